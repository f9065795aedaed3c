// Second and fourth moments of samples, every multiset of coordinates once.
#include "inner.hpp"
#include "kernels.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index LENGTH = 512;  // samples at a time: products of all pairs stay in the second-level cache

template <class Real> struct Block {
    Index r, n_pairs;
    Scratch<Real> samples, weighted, pairs, left;

    // Tiles read beyond the last pair, what they find there is not used.
    explicit Block(Index r_)
        : r(r_), n_pairs(r * (r + 1) / 2), samples(r * LENGTH), weighted(r * LENGTH), pairs((n_pairs + RIGHT) * LENGTH),
          left(r * LENGTH) {}

    // Where the pairs start whose smaller coordinate is i.
    ODECO_INLINE Index pair(Index i) const { return i * r - i * (i - 1) / 2; }

    // Samples from `start` on, zeros behind them up to whole registers; returns how many that are.
    ODECO_INLINE Index fill(Rows<const Real> rows, Index start, Index size, Span<const double> weights) {
        const Index padded = RowShape<Real>(size).padded();
        for (Index i = 0; i < r; ++i)
            for (Index t = 0; t < padded; ++t) {
                const Real value = t < size ? rows[i][start + t] : Real(0);
                samples[i * LENGTH + t] = value;
                weighted[i * LENGTH + t] = weights.size > 0 && t < size ? value * Real(weights[start + t]) : value;
            }
        for (Index i = 0; i < r; ++i)
            for (Index j = i; j < r; ++j)
                multiply<Real>(samples + i * LENGTH, samples + j * LENGTH, padded, pairs + (pair(i) + j - i) * LENGTH);
        return padded;
    }

    // Products of coordinates i <= j with those of k <= l, j <= k: all whose second one is j.
    ODECO_INLINE void add(Index j, Index size, double* second, double* fourth) {
        for (Index i = 0; i <= j; ++i) {
            multiply<Real>(samples + i * LENGTH, weighted + j * LENGTH, size, left + i * LENGTH);
            second[i * r + j] += double(sum_of<Real>(left + i * LENGTH, size));
        }
        const Index first = pair(j);
        add_inner<Real>(left, j + 1, pairs + first * LENGTH, n_pairs - first, LENGTH, size,
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

}  // namespace

const CumulantKernels<float> cumulants32{add_fourth<float>};
const CumulantKernels<double> cumulants64{add_fourth<double>};

}  // namespace odeco::ODECO_ISA
