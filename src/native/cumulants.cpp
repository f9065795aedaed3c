// Second and fourth moments of samples, every multiset of coordinates once.
#include "inner.hpp"
#include "kernels.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index LENGTH = 512;  // samples at a time: products of all pairs stay in the second-level cache
constexpr Index STRIDE = LENGTH + 16;  // rows a whole page apart would share their places in the cache

// Samples from `start` on, zeros behind them up to whole registers; returns how many that are.
template <class Real> ODECO_INLINE Index take(Rows<const Real> rows, Index start, Index size, Real* samples) {
    const Index padded = RowShape<Real>(size).padded();
    for (Index i = 0; i < rows.n; ++i) {
        __builtin_memcpy(samples + i * STRIDE, rows[i] + start, size * sizeof(Real));
        for (Index t = size; t < padded; ++t) samples[i * STRIDE + t] = 0;
    }
    return padded;
}

// The samples by their weights, from `start` on; themselves where there are none.
template <class Real>
ODECO_INLINE const Real* weigh(const Real* samples, Index r, Index start, Index size, Span<const double> weights, Real* out) {
    if (weights.size == 0) return samples;
    for (Index i = 0; i < r; ++i)
        for (Index t = 0; t < size; ++t) out[i * STRIDE + t] = samples[i * STRIDE + t] * Real(weights[start + t]);
    return out;
}

template <class Real> struct Block {
    Index r, n_pairs;
    Scratch<Real> samples, by_weight, pairs, left;
    const Real* weighted = samples;

    // Tiles read beyond the last pair, what they find there is not used.
    explicit Block(Index r_)
        : r(r_), n_pairs(r * (r + 1) / 2), samples(r * STRIDE), by_weight(r * STRIDE), pairs((n_pairs + RIGHT) * STRIDE),
          left(r * STRIDE) {}

    // Where the pairs start whose smaller coordinate is i.
    ODECO_INLINE Index pair(Index i) const { return i * r - i * (i - 1) / 2; }

    // Some samples and their products of two; returns how many there are, zeros behind them included.
    ODECO_INLINE Index fill(Rows<const Real> rows, Index start, Index size, Span<const double> weights) {
        const Index padded = take<Real>(rows, start, size, samples);
        weighted = weigh<Real>(samples, r, start, size, weights, by_weight);
        for (Index i = 0; i < r; ++i)
            for (Index j = i; j < r; ++j)
                multiply<Real>(samples + i * STRIDE, samples + j * STRIDE, padded, pairs + (pair(i) + j - i) * STRIDE);
        return padded;
    }

    // Products of coordinates i <= j with those of k <= l, j <= k: all whose second one is j.
    ODECO_INLINE void add(Index j, Index size, double* second, double* fourth) {
        for (Index i = 0; i <= j; ++i) {
            multiply<Real>(samples + i * STRIDE, weighted + j * STRIDE, size, left + i * STRIDE);
            second[i * r + j] += double(sum_of<Real>(left + i * STRIDE, size));
        }
        const Index first = pair(j);
        add_inner<Real>(left, j + 1, pairs + first * STRIDE, n_pairs - first, STRIDE, size,
                        [&](Index i) { return fourth + (pair(i) + j - i) * n_pairs + first; });
    }
};

template <class Real>
void add_fourth(Rows<const Real> rows, Range range, Span<const double> weights, double* second, double* fourth) {
    Block<Real> block(rows.n);
    for (Index start = range.start; start < range.stop; start += LENGTH) {
        const Index size = block.fill(rows, start, smaller<Index>(LENGTH, range.stop - start), weights);
        for (Index j = 0; j < rows.n; ++j) block.add(j, size, second, fourth);
    }
}

// Tiles above the diagonal, and what of them is below.
template <class Real>
void add_second(Rows<const Real> rows, Range range, Span<const double> weights, Rows<double> second) {
    const Index r = rows.n;
    Scratch<Real> samples((r + RIGHT) * STRIDE), by_weight(r * STRIDE);
    Scratch<double> sums(r * r);
    for (Index start = range.start; start < range.stop; start += LENGTH) {
        const Index size = smaller<Index>(LENGTH, range.stop - start), padded = take<Real>(rows, start, size, samples);
        const Real* weighted = weigh<Real>(samples, r, start, size, weights, by_weight);
        for (Index a = 0; a < r; a += LEFT)
            add_inner<Real>(weighted + a * STRIDE, smaller<Index>(LEFT, r - a), samples + a * STRIDE, r - a, STRIDE, padded,
                            [&](Index i) { return sums + (a + i) * r + a; });
    }
    for (Index i = 0; i < r; ++i)
        for (Index j = 0; j < r; ++j) second[i][j] += sums[smaller(i, j) * r + larger(i, j)];
}

}  // namespace

const CumulantKernels<float> cumulants32{add_second<float>, add_fourth<float>};
const CumulantKernels<double> cumulants64{add_second<double>, add_fourth<double>};

}  // namespace odeco::ODECO_ISA
