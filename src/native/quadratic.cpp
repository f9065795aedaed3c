// The E step of mixtures of normal distributions with a covariance each, and the sums that their M step needs.
//
// Log densities are those of standard coordinates, products with a triangle, which no cancellation threatens. Products of
// two columns are formed once for all components.
#include "inner.hpp"
#include "posterior_blocks.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int COORDINATES = 4;  // that are found side by side, of two registers of samples

// Adds the squares of A standard coordinates from `first` on.
template <int A, class Real>
ODECO_INLINE void add_squares(const Block<Real>& block, const Real* triangle, const Real* shifts, Index d, Index first,
                              Index i, Vec<Real> (&distances)[2]) {
    Vec<Real> sums[A][2];
    for (int a = 0; a < A; ++a) sums[a][0] = sums[a][1] = repeat(shifts[first + a]);
    for (Index c = 0; c < first + A; ++c) {
        const Vec<Real> one = load(block.at(c, i)), two = load(block.at(c, i + 1));
        for (int a = 0; a < A; ++a) {
            sums[a][0] += triangle[(first + a) * d + c] * one;
            sums[a][1] += triangle[(first + a) * d + c] * two;
        }
    }
    for (int a = 0; a < A; ++a)
        for (int half = 0; half < 2; ++half) distances[half] += sums[a][half] * sums[a][half];
}

// Some samples, with room for their responsibilities and for products of a column with those after it.
template <class Real> struct Samples {
    const QuadraticMixture<Real>& of;
    Index k, d, p, size, stride;
    Scratch<Real> shares, columns, products;

    Samples(const QuadraticMixture<Real>& of_, Index p_, Index n)
        : of(of_), k(of.shifts.n), d(of.shifts.width), p(p_), size(block_size<Real>(n, k, p + d)),
          stride(size + 2 * WIDTH<Real>), shares(k * stride), columns((p + RIGHT) * stride), products((d + RIGHT) * stride) {}

    // The samples from `start` on, `there` of them, zeros behind them.
    Block<Real> take(Rows<const Real> features, Index start, Index there) {
        const Block<Real> block{{columns, p, stride}, 0, RowShape<Real>(there), shares, stride};
        for (Index q = 0; q < p; ++q) {
            Real* column = columns + q * stride;
            __builtin_memcpy(column, features[q] + start, there * sizeof(Real));
            for (Index t = there; t < (block.shape.count + 1) * WIDTH<Real>; ++t) column[t] = 0;
        }
        return block;
    }

    // Log densities of registers i and i + 1 of samples.
    void find_densities(const Block<Real>& block, Index i) const {
        for (Index j = 0; j < k; ++j) {
            Vec<Real> distances[2] = {};
            const Real *triangle = of.triangles + j * d * d, *shifts = of.shifts[j];
            in_pieces<COORDINATES>(0, d, [&](auto many, Index first) __attribute__((always_inline)) {
                add_squares<many.value, Real>(block, triangle, shifts, d, first, i, distances);
            });
            for (int half = 0; half < 2; ++half)
                store(block.share(j, i + half), of.constants[j] - Real(0.5) * distances[half]);
        }
    }

    void add_sums(const Block<Real>& block, const PosteriorSums<Real>& out, double* second) {
        const Index padded = block.shape.padded();
        add_inner<Real>(shares, k, columns, p, stride, padded, [&](Index j) { return out.sums + j * p; });
        for (Index j = 0; j < k; ++j) out.totals[j] += total_share(block, j);
        add_crossed<Real>(shares, k, columns, d, stride, padded, products, second);
    }
};

template <class Real>
void quadratic_densities(Rows<const Real> features, const QuadraticMixture<Real>& of, Rows<Real> out) {
    const Index n = features.width;
    Samples<Real> samples(of, features.n, n);
    for (Index start = 0; start < n; start += samples.size) {
        const Index there = smaller(samples.size, n - start);
        const Block<Real> block = samples.take(features, start, there);
        for (Index i = 0; i < block.shape.count; i += 2) samples.find_densities(block, i);
        for (Index j = 0; j < out.n; ++j) __builtin_memcpy(out[j] + start, block.share(j, 0), there * sizeof(Real));
    }
}

template <class Real>
void quadratic_sums(Rows<const Real> features, Span<const double> weights, const QuadraticMixture<Real>& of,
                    const PosteriorSums<Real>& out, double* second) {
    const Index n = features.width, k = of.shifts.n, d = of.shifts.width;
    Samples<Real> samples(of, features.n, n);
    for (Index start = 0; start < n && k > 0; start += samples.size) {
        const Block<Real> block = samples.take(features, start, smaller(samples.size, n - start));
        const Span<const double> mine{weights.data + (weights.size > 0 ? start : 0), weights.size};
        for (Index i = 0; i < block.shape.count; i += 2) {
            samples.find_densities(block, i);
            for (Index r = i; r < smaller(i + 2, block.shape.count); ++r)
                normalize(block, 0, k, r, mine, out.highest + start, out.norms + start);
        }
        samples.add_sums(block, out, second);
    }
    mirror(second, k, d);
}

}  // namespace

const QuadraticKernels<float> quadratic32{quadratic_densities<float>, quadratic_sums<float>};
const QuadraticKernels<double> quadratic64{quadratic_densities<double>, quadratic_sums<double>};

}  // namespace odeco::ODECO_ISA
