// Loops over samples and grids for score functions.
#include "inner.hpp"
#include "kernels.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int LENGTH = 1024;  // samples at a time
constexpr int STRIDE = LENGTH + 16;  // rows a whole page apart would share their places in the cache

// The cell of each sample, after those of the other half for half 1, and where in it the sample lies, 0 to 1.
struct Places {
    std::int32_t cells[LENGTH];
    float places[LENGTH];

    // A loop of its own: it vectorises, the scattered reads and writes that follow do not. Beyond the grid is at its ends,
    // and so is what is not a number: no sample leads out of the table.
    template <class Real> ODECO_INLINE void find(const Real* row, const std::int8_t* halves, Index size, Grid grid) {
        const float last = float(double(grid.n_cells) - 1.001), origin = float(grid.low), scale = float(1 / grid.step);
        const std::int32_t n_cells = std::int32_t(grid.n_cells);
        for (Index t = 0; t < size; ++t) {
            float place = (float(row[t]) - origin) * scale;
            place = place > 0 ? place : 0.0f;
            place = place < last ? place : last;
            const std::int32_t cell = std::int32_t(place);
            cells[t] = cell + (halves[t] ? n_cells : 0);
            places[t] = place - float(cell);
        }
    }
};

// Outputs of a block of samples: products with the rows of a matrix.
template <class Real> struct Outputs {
    Index r, k;
    Rows<const Real> turn;
    Scratch<Real> samples, values;

    explicit Outputs(Rows<const Real> turn_)
        : r(turn_.width), k(turn_.n), turn(turn_), samples(r * STRIDE), values(k * STRIDE) {}

    ODECO_INLINE Real* operator[](Index i) const { return values + i * STRIDE; }

    // Of the samples from `start` on, zeros behind them up to whole registers; returns how many that are.
    ODECO_INLINE Index find(Rows<const Real> rows, Index start, Index size) {
        const Index padded = RowShape<Real>(size).padded();
        for (Index j = 0; j < r; ++j) {
            __builtin_memcpy(samples + j * STRIDE, rows[j] + start, size * sizeof(Real));
            for (Index t = size; t < padded; ++t) samples[j * STRIDE + t] = 0;
        }
        for (Index i = 0; i < k; i += LEFT)
            for (Index t = 0; t < padded; t += WIDTH<Real>) {
                Vec<Real> sums[LEFT] = {};
                for (Index j = 0; j < r; ++j) {
                    const Vec<Real> value = load(samples + j * STRIDE + t);
                    for (int a = 0; a < LEFT; ++a) sums[a] += turn[smaller<Index>(i + a, k - 1)][j] * value;
                }
                for (int a = 0; a < LEFT && i + a < k; ++a) store((*this)[i + a] + t, sums[a]);
            }
        return padded;
    }
};

template <class Real> void add_counts(const ScoredSamples<Real>& of, Range range, Grid grid, double* counts) {
    Places at;
    Outputs<Real> outputs(of.turn);
    for (Index start = range.start; start < range.stop; start += LENGTH) {
        const Index size = smaller<Index>(LENGTH, range.stop - start);
        outputs.find(of.rows, start, size);
        for (Index i = 0; i < outputs.k; ++i) {
            double* table = counts + i * 4 * grid.n_cells;
            at.find(outputs[i], of.halves + start, size, grid);
            for (Index t = 0; t < size; ++t) {
                const double weight = of.weights.size > 0 ? of.weights[start + t] : 1.0;
                table[2 * at.cells[t]] += weight;
                table[2 * at.cells[t] + 1] += weight * at.places[t];
            }
        }
    }
}

template <class Real>
void add_score_products(const ScoredSamples<Real>& of, Range range, Grid grid, const float* tables, Rows<double> out) {
    Places at;
    Outputs<Real> outputs(of.turn);
    const Index k = outputs.k;
    Scratch<Real> functions((2 * k + 1 + RIGHT) * STRIDE), weighted((k + 1) * STRIDE);
    for (Index t = 0; t < LENGTH; ++t) functions[2 * k * STRIDE + t] = 1;
    for (Index start = range.start; start < range.stop; start += LENGTH) {
        const Index size = smaller<Index>(LENGTH, range.stop - start), padded = outputs.find(of.rows, start, size);
        __builtin_memcpy(functions, outputs[0], k * STRIDE * sizeof(Real));
        for (Index i = 0; i < k; ++i) {
            const float* table = tables + i * 2 * grid.n_cells;
            Real* values = functions + (k + i) * STRIDE;
            at.find(outputs[i], of.halves + start, size, grid);
            for (Index t = 0; t < size; ++t) {
                const float left = table[at.cells[t]];
                values[t] = left + at.places[t] * (table[at.cells[t] + 1] - left);
            }
        }
        for (Index i = 0; i <= k; ++i)
            for (Index t = 0; t < padded; ++t) {
                const Real weight = t >= size ? Real(0) : of.weights.size > 0 ? Real(of.weights[start + t]) : Real(1);
                weighted[i * STRIDE + t] = weight * functions[(k + i) * STRIDE + t];
            }
        add_inner<Real>(weighted, k + 1, functions, 2 * k + 1, STRIDE, padded, [&](Index i) { return out[i]; });
    }
}

using Lanes = Vec<double>;

// Systems of five diagonals, by LDL', one for each penalty: all lanes have the same masses and right side.
void smoothing_spline(Index m, const double* masses, const double* right, Lanes penalty, Lanes* solution, Lanes* pivots,
                      Lanes* first, Lanes* second) {
    for (Index b = 0; b < m; ++b) {
        const Index edge = smaller(b, m - 1 - b);
        Lanes diagonal = masses[b] + penalty * (edge == 0 ? 1.0 : edge == 1 ? 5.0 : 6.0);
        Lanes beside = penalty * (b == 0 || b == m - 2 ? -2.0 : -4.0), value = repeat(right[b]);
        if (b >= 1) {
            diagonal -= pivots[b - 1] * first[b - 1] * first[b - 1];
            beside -= pivots[b - 1] * first[b - 1] * second[b - 1];
            value -= first[b - 1] * solution[b - 1];
        }
        if (b >= 2) {
            diagonal -= pivots[b - 2] * second[b - 2] * second[b - 2];
            value -= second[b - 2] * solution[b - 2];
        }
        pivots[b] = diagonal;
        solution[b] = value;
        first[b] = b < m - 1 ? beside / diagonal : Lanes{};
        second[b] = b < m - 2 ? penalty / diagonal : Lanes{};
    }
    for (Index b = m - 1; b >= 0; --b) {
        Lanes value = solution[b] / pivots[b];
        if (b < m - 1) value -= first[b] * solution[b + 1];
        if (b < m - 2) value -= second[b] * solution[b + 2];
        solution[b] = value;
    }
}

void smoothing_splines(Rows<const double> masses, const double* right, Span<const double> penalties, double* out) {
    constexpr Index N = WIDTH<double>;
    const Index k = masses.n, m = masses.width;
    Scratch<Lanes> solution(m), pivots(m), first(m), second(m);
    for (Index level = 0; level < penalties.size; level += N) {
        const Index count = smaller<Index>(N, penalties.size - level);
        Lanes penalty;
        for (Index n = 0; n < N; ++n) penalty[n] = penalties[level + smaller(n, count - 1)];
        for (Index i = 0; i < k; ++i) {
            smoothing_spline(m, masses[i], right + i * m, penalty, solution, pivots, first, second);
            for (Index n = 0; n < count; ++n)
                for (Index b = 0; b < m; ++b) out[((level + n) * k + i) * m + b] = solution[b][n];
        }
    }
}

}  // namespace

const ScoreKernels<float> scores32{add_counts<float>, add_score_products<float>};
const ScoreKernels<double> scores64{add_counts<double>, add_score_products<double>};
const SplineKernels splines{smoothing_splines};

}  // namespace odeco::ODECO_ISA
