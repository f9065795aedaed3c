// Second and fourth moments of samples, every multiset of coordinates once.
#include "kernels.hpp"
#include "vectors.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index LENGTH = 512;  // samples at a time: products of all pairs stay in the second-level cache
constexpr int LEFT = 4, RIGHT = REGISTER_BYTES == 64 ? 6 : 3;  // a tile of inner products fills the registers

// Inner products of A rows with RIGHT rows of LENGTH numbers, the first `count` of them added to rows of `out`.
template <int A, class Real>
ODECO_INLINE void add_inner(const Real* left, const Real* right, Index size, Index count, double* const* out) {
    Vec<Real> sums[RIGHT][A] = {};
    for (Index t = 0; t < size; t += WIDTH<Real>) {
        Vec<Real> values[RIGHT];
        for (int b = 0; b < RIGHT; ++b) values[b] = load(right + b * LENGTH + t);
        for (int a = 0; a < A; ++a) {
            const Vec<Real> factor = load(left + a * LENGTH + t);
            for (int b = 0; b < RIGHT; ++b) sums[b][a] += factor * values[b];
        }
    }
    for (int b = 0; b < RIGHT; ++b) {
        Real totals[A];
        all_totals<A, Real>(sums[b], totals);
        for (int a = 0; a < A && b < count; ++a) out[a][b] += double(totals[a]);
    }
}

template <class Real>
ODECO_INLINE void multiply(const Real* first, const Real* second, Index size, Real* out) {
    for (Index t = 0; t < size; t += WIDTH<Real>) store(out + t, load(first + t) * load(second + t));
}

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
            Vec<Real> sum{};
            for (Index t = 0; t < size; t += WIDTH<Real>) sum += load(left + i * LENGTH + t);
            second[i * r + j] += double(total<Real>(sum));
        }
        for (Index q = pair(j); q < n_pairs; q += RIGHT) {
            const Index count = smaller<Index>(RIGHT, n_pairs - q);
            for (Index i = 0; i <= j; i += LEFT) {
                double* out[LEFT] = {};
                const Index many = smaller<Index>(LEFT, j + 1 - i);
                for (Index a = 0; a < many; ++a) out[a] = fourth + (pair(i + a) + j - i - a) * n_pairs + q;
                const Real *these = left + i * LENGTH, *those = pairs + q * LENGTH;
                if (many == 4) add_inner<4, Real>(these, those, size, count, out);
                else if (many == 3) add_inner<3, Real>(these, those, size, count, out);
                else if (many == 2) add_inner<2, Real>(these, those, size, count, out);
                else add_inner<1, Real>(these, those, size, count, out);
            }
        }
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
