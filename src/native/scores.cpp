// Loops over samples and grids for score functions.
#include "kernels.hpp"
#include "vectors.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int LENGTH = 1024;  // samples at a time

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

template <class Real>
void add_counts(Rows<const Real> outputs, Span<const double> weights, const std::int8_t* halves, Grid grid, double* counts) {
    Places at;
    for (Index i = 0; i < outputs.n; ++i) {
        double* table = counts + i * 4 * grid.n_cells;
        for (Index start = 0; start < outputs.width; start += LENGTH) {
            const Index size = smaller<Index>(LENGTH, outputs.width - start);
            at.find(outputs[i] + start, halves + start, size, grid);
            for (Index t = 0; t < size; ++t) {
                const double weight = weights.size > 0 ? weights[start + t] : 1.0;
                table[2 * at.cells[t]] += weight;
                table[2 * at.cells[t] + 1] += weight * at.places[t];
            }
        }
    }
}

template <class Real>
void look_up(Rows<const Real> outputs, const std::int8_t* halves, Grid grid, const float* tables, Rows<Real> out) {
    Places at;
    for (Index i = 0; i < outputs.n; ++i) {
        const float* table = tables + i * 2 * grid.n_cells;
        for (Index start = 0; start < outputs.width; start += LENGTH) {
            const Index size = smaller<Index>(LENGTH, outputs.width - start);
            at.find(outputs[i] + start, halves + start, size, grid);
            for (Index t = 0; t < size; ++t) {
                const float left = table[at.cells[t]];
                out[i][start + t] = left + at.places[t] * (table[at.cells[t] + 1] - left);
            }
        }
    }
}

// One system of five diagonals, by LDL'.
void smoothing_spline(Index m, const double* masses, const double* right, double penalty, double* solution, double* pivots,
                      double* first, double* second) {
    for (Index b = 0; b < m; ++b) {
        const Index edge = smaller(b, m - 1 - b);
        double diagonal = masses[b] + penalty * (edge == 0 ? 1.0 : edge == 1 ? 5.0 : 6.0);
        double beside = penalty * (b == 0 || b == m - 2 ? -2.0 : -4.0), value = right[b];
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
        first[b] = b < m - 1 ? beside / diagonal : 0.0;
        second[b] = b < m - 2 ? penalty / diagonal : 0.0;
    }
    for (Index b = m - 1; b >= 0; --b) {
        double value = solution[b] / pivots[b];
        if (b < m - 1) value -= first[b] * solution[b + 1];
        if (b < m - 2) value -= second[b] * solution[b + 2];
        solution[b] = value;
    }
}

void smoothing_splines(Rows<const double> masses, const double* right, Span<const double> penalties, double* out) {
    const Index k = masses.n, m = masses.width;
    Scratch<double> pivots(m), first(m), second(m);
    for (Index level = 0; level < penalties.size; ++level)
        for (Index i = 0; i < k; ++i)
            smoothing_spline(m, masses[i], right + i * m, penalties[level], out + (level * k + i) * m, pivots, first, second);
}

}  // namespace

const ScoreKernels<float> scores32{add_counts<float>, look_up<float>};
const ScoreKernels<double> scores64{add_counts<double>, look_up<double>};
const SplineKernels splines{smoothing_splines};

}  // namespace odeco::ODECO_ISA
