// Moments of consecutive steps through features of their observations.
//
// Steps lie side by side in the lanes of registers. The features of a few steps are formed, used and forgotten while they
// are in cache; sums of products are inner products of rows (`inner.hpp`).
#include "inner.hpp"
#include "kernels.hpp"
#include "logarithm.hpp"

namespace odeco::ODECO_ISA {
namespace {

using Lanes = Vec<double>;

constexpr Index N = WIDTH<double>;
constexpr Index PIECE = 64;    // steps whose features are formed at a time: they stay in the first-level cache
constexpr Index LENGTH = 512;  // steps of a block of sums
constexpr Index STRIDE = LENGTH + 16;  // with the neighbours of the last; rows a whole page apart would share places
constexpr double REACH = 6.0;  // deviations: what lies farther says no more than that it is far

// A smooth step from -1 to 1, without a transcendental function.
ODECO_INLINE Lanes smooth_step(Lanes u) { return u / (1.0 + (u < 0 ? -u : u)); }

struct Features {
    const FeatureMap& map;
    Index d;
    Scratch<double> centred;
    explicit Features(const FeatureMap& map_) : map(map_), d(map.axes.n), centred(d * PIECE) {}

    ODECO_INLINE Index size() const { return 6 * d + map.products.n + map.knots.n * d; }

    // Of `PIECE` steps from `begin` on, one in each row of `out`; those after the last step are as if nothing was observed.
    void find(Rows<const double> values, Index begin, double* out, Index stride) {
        read(values, begin);
        turn(out, stride);
        for (Index i = 0; i < map.products.n; ++i) {
            const double *first = out + map.products[i][0] * stride, *second = out + map.products[i][1] * stride;
            double* row = out + (2 * d + i) * stride;
            for (Index s = 0; s < PIECE; s += N) store(row + s, load(first + s) * load(second + s));
        }
        for (Index c = 0; c < d; ++c) bend(c, out, stride);
    }

  private:
    void read(Rows<const double> values, Index begin) {
        const Index there = smaller<Index>(PIECE, values.n - begin);
        for (Index c = 0; c < d; ++c) {
            double* row = centred + c * PIECE;
            for (Index s = 0; s < there; ++s) row[s] = values[begin + s][c] - map.center[c];
            for (Index s = 0; s < there; ++s) row[s] = row[s] == row[s] ? row[s] : 0.0;
            for (Index s = there; s < PIECE; ++s) row[s] = 0;
        }
    }

    // Standard coordinates, far ones drawn in.
    void turn(double* out, Index stride) const {
        for (Index j = 0; j < d; ++j)
            for (Index s = 0; s < PIECE; s += N) {
                Lanes y{};
                for (Index c = 0; c < d; ++c) y += map.axes[c][j] * load(centred + c * PIECE + s);
                y = y < -REACH ? repeat(-REACH) : y;
                store(out + j * stride + s, y > REACH ? repeat(REACH) : y);
            }
    }

    // All features of one coordinate alone.
    void bend(Index c, double* out, Index stride) const {
        const Index rest = 2 * d + map.products.n + c;
        for (Index s = 0; s < PIECE; s += N) {
            const Lanes y = load(out + c * stride + s), square = y * y, wide = 1.0 / (1.0 + square);
            double* to = out + rest * stride + s;
            store(out + (d + c) * stride + s, square);
            store(to, smooth_step(2 * y));
            store(to + d * stride, logarithm(square + 0.05));
            store(to + 2 * d * stride, wide * wide);
            store(to + 3 * d * stride, 1.0 / (1.0 + 8.0 * square));
            for (Index q = 0; q < map.knots.n; ++q)
                store(to + (4 + q) * d * stride, smooth_step(2 * (y - map.knots[q][c])));
        }
    }
};

// out[i] = offsets[i] + <coefficients[i], features> of a piece, for A rows from `first` on.
template <int A>
ODECO_INLINE void project_piece(const double* features, Rows<const double> coefficients, const double* offsets, Index first,
                                double* pieces) {
    for (Index s = 0; s < PIECE; s += 2 * N) {
        Lanes sums[A][2];
        for (int a = 0; a < A; ++a) sums[a][0] = sums[a][1] = repeat(offsets[first + a]);
        for (Index j = 0; j < coefficients.width; ++j) {
            const Lanes one = load(features + j * PIECE + s), two = load(features + j * PIECE + s + N);
            for (int a = 0; a < A; ++a) {
                const double factor = coefficients[first + a][j];
                sums[a][0] += factor * one;
                sums[a][1] += factor * two;
            }
        }
        for (int a = 0; a < A; ++a) {
            store(pieces + a * PIECE + s, sums[a][0]);
            store(pieces + a * PIECE + s + N, sums[a][1]);
        }
    }
}

void project_steps(Rows<const double> values, const FeatureMap& map, Rows<const double> coefficients,
                   const double* offsets, Rows<double> out) {
    Features features(map);
    Scratch<double> found(features.size() * PIECE), pieces(LEFT * PIECE);
    for (Index begin = 0; begin < values.n; begin += PIECE) {
        features.find(values, begin, found, PIECE);
        const Index there = smaller<Index>(PIECE, values.n - begin);
        for (Index i = 0; i < coefficients.n; i += LEFT) {
            const Index many = smaller<Index>(LEFT, coefficients.n - i);
            if (many == 4) project_piece<4>(found, coefficients, offsets, i, pieces);
            else if (many == 3) project_piece<3>(found, coefficients, offsets, i, pieces);
            else if (many == 2) project_piece<2>(found, coefficients, offsets, i, pieces);
            else project_piece<1>(found, coefficients, offsets, i, pieces);
            for (Index a = 0; a < many; ++a)
                __builtin_memcpy(out[i + a] + begin, pieces + a * PIECE, there * sizeof(double));
        }
    }
}

// What the steps of a block count, 0 after the last: each, with the next, with the next two, as the first of a sequence.
struct Weights {
    double own[STRIDE], pair[STRIDE], triple[STRIDE], first[STRIDE];

    void find(const LinkedSteps& steps, Index begin, Index size, Index padded) {
        for (Index s = 0; s < padded; ++s) {
            const Index t = begin + s;
            own[s] = s < size ? weight(steps, t) : 0.0;
            first[s] = s < size && steps.first[t] ? own[s] : 0.0;
            pair[s] = s < size ? linked(steps, t) : 0.0;
            triple[s] = s < size ? smaller(pair[s], linked(steps, t + 1)) : 0.0;
        }
    }

  private:
    static ODECO_INLINE double weight(const LinkedSteps& steps, Index t) {
        return steps.weights.size > 0 ? steps.weights[t] : 1.0;
    }
    // Of steps t and t + 1, where the second follows the first.
    static ODECO_INLINE double linked(const LinkedSteps& steps, Index t) {
        if (t + 1 >= steps.values.n || steps.first[t + 1]) return 0.0;
        return smaller(weight(steps, t), weight(steps, t + 1));
    }
};

void add_step_pairs(const LinkedSteps& steps, const FeatureMap& map, const StepPairs& out) {
    Features features(map);
    const Index size = features.size();
    Weights weights;
    Scratch<double> found((size + RIGHT) * STRIDE), weighed(size * STRIDE);
    auto weigh = [&](const double* by, Index padded) {
        for (Index i = 0; i < size; ++i) multiply<double>(found + i * STRIDE, by, padded, weighed + i * STRIDE);
    };
    for (Index begin = 0; begin < steps.n_own; begin += LENGTH - 1) {  // the last of a block is the neighbour of another
        const Index own = smaller<Index>(LENGTH - 1, steps.n_own - begin), padded = RowShape<double>(own).padded();
        for (Index s = 0; s <= own; s += PIECE) features.find(steps.values, begin + s, found + s, STRIDE);
        weights.find(steps, begin, own, padded);
        out.weights[0] += sum_of<double>(weights.own, padded);
        out.weights[1] += sum_of<double>(weights.pair, padded);
        weigh(weights.own, padded);
        for (Index i = 0; i < size; ++i) out.total[i] += sum_of<double>(weighed + i * STRIDE, padded);
        for (Index i = 0; i < size; i += LEFT)  // of the square the part from the diagonal on
            add_inner<double>(weighed + i * STRIDE, smaller<Index>(LEFT, size - i), found + i * STRIDE, size - i, STRIDE,
                              padded, [&](Index a) { return out.square[i + a] + i; });
        weigh(weights.pair, padded);
        add_inner<double>(weighed, size, found + 1, size, STRIDE, padded, [&](Index a) { return out.lagged[a]; });
    }
    mirror(out.square.data, 1, size);
}

// Steps of a block on a basis with their weights, and sums of triples of them.
struct TripleBlock {
    const LinkedSteps& steps;
    const StepTriples& out;
    Index k, d;
    Scratch<double> z, left, around, rows, seen, products;
    Weights weights;

    TripleBlock(const LinkedSteps& steps_, const StepTriples& out_)
        : steps(steps_), out(out_), k(out.z.n), d(steps.values.width), z((k + RIGHT) * STRIDE), left(k * STRIDE),
          around(2 * k * STRIDE), rows((d + RIGHT) * STRIDE), seen((d + RIGHT) * STRIDE), products((d + RIGHT) * STRIDE) {}

    void add(Index begin, Index own) {
        const Index size = RowShape<double>(own).padded(), there = smaller(own + 2, steps.values.n - begin);
        weights.find(steps, begin, own, size);
        for (Index i = 0; i < k; ++i) {
            __builtin_memcpy(z + i * STRIDE, out.z[i] + begin, there * sizeof(double));
            for (Index s = there; s < STRIDE; ++s) z[i * STRIDE + s] = 0;
        }
        out.weights[0] += sum_of<double>(weights.pair, size);
        out.weights[1] += sum_of<double>(weights.triple, size);
        out.weights[2] += sum_of<double>(weights.first, size);
        add_neighbours(size);
        add_middle(begin, size);
    }

  private:
    void add_neighbours(Index size) {
        for (Index i = 0; i < k; ++i) {
            multiply<double>(z + i * STRIDE, weights.first, size, left);
            out.first[i] += sum_of<double>(left, size);
        }
        for (Index i = 0; i < k; ++i) multiply<double>(z + i * STRIDE, weights.pair, size, left + i * STRIDE);
        add_inner<double>(left, k, z + 1, k, STRIDE, size, [&](Index i) { return out.pairs + i * k; });
        for (Index i = 0; i < k; ++i) {
            multiply<double>(z + i * STRIDE, weights.triple, size, around + i * STRIDE);
            multiply<double>(z + i * STRIDE + 2, weights.triple, size, around + (k + i) * STRIDE);
        }
        for (Index i = 0; i < k; ++i) {
            for (Index j = 0; j < k; ++j)
                multiply<double>(around + i * STRIDE, z + j * STRIDE + 1, size, left + j * STRIDE);
            add_inner<double>(left, k, z + 2, k, STRIDE, size, [&](Index j) { return out.triples + (i * k + j) * k; });
        }
    }

    // Observations of middle steps times the weighted z of both neighbours.
    void add_middle(Index begin, Index size) {
        const bool missing = read(begin + 1, size);
        add_rows(rows, size, out.values, out.products);
        if (missing) return add_rows(seen, size, out.seen, out.seen_products);
        const Index n_products = out.crossed ? d * d : d;
        for (Index i = 0; i < 2 * k; ++i) {
            const double sum = sum_of<double>(around + i * STRIDE, size);
            for (Index c = 0; c < d; ++c) out.seen[i * d + c] += sum;
            for (Index c = 0; c < n_products; ++c) out.seen_products[i * n_products + c] += sum;
        }
    }

    // About the centre, 0 where missing; whether something is.
    bool read(Index begin, Index size) {
        const Index there = smaller(size, steps.values.n - begin);
        bool missing = false;
        for (Index c = 0; c < d; ++c) {
            double *row = rows + c * STRIDE, *flags = seen + c * STRIDE;
            for (Index s = 0; s < size; ++s) row[s] = s < there ? steps.values[begin + s][c] - out.center[c] : 0.0;
            for (Index s = 0; s < size; ++s) {
                const bool absent = row[s] != row[s];
                missing |= absent;
                flags[s] = absent ? 0.0 : 1.0;
                row[s] = absent ? 0.0 : row[s];
            }
        }
        return missing;
    }

    // Sums of rows by what is around them, and of their squares, or of products of each with itself and those after it.
    void add_rows(const double* of, Index size, double* first, double* second) {
        add_inner<double>(around, 2 * k, of, d, STRIDE, size, [&](Index i) { return first + i * d; });
        if (!out.crossed) {
            for (Index c = 0; c < d; ++c) multiply<double>(of + c * STRIDE, of + c * STRIDE, size, products + c * STRIDE);
            return add_inner<double>(around, 2 * k, products, d, STRIDE, size, [&](Index i) { return second + i * d; });
        }
        add_crossed<double>(around, 2 * k, of, d, STRIDE, size, products, second);
    }
};

void add_step_triples(const LinkedSteps& steps, const StepTriples& out) {
    TripleBlock block(steps, out);
    for (Index begin = 0; begin < steps.n_own; begin += LENGTH)
        block.add(begin, smaller<Index>(LENGTH, steps.n_own - begin));
    if (!out.crossed) return;
    mirror(out.products, 2 * block.k, block.d);
    mirror(out.seen_products, 2 * block.k, block.d);
}

}  // namespace

const FeatureKernels step_features{project_steps, add_step_pairs, add_step_triples};

}  // namespace odeco::ODECO_ISA
