// The E step of mixtures whose log densities are linear in features of a sample, and the sums that their M step needs.
//
// A block of samples is handled while it is in cache: log densities (a matrix product), responsibilities, and sums of
// features by responsibilities (another one).
#include "posterior_blocks.hpp"
#include "row_blocks.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int COMPONENTS = REGISTER_BYTES == 64 ? 8 : 4;  // densities of two registers of samples: 16 sums, or 8
constexpr int ROWS = 4, COLUMNS = REGISTER_BYTES == 64 ? 4 : 2;  // sums of a piece of the second product

// Log densities of J components from `first` on, of two registers of samples.
template <int J, class Real>
ODECO_INLINE void log_densities(const LinearMixtures<Real>& mixtures, const Block<Real>& block, Index first, Index i) {
    const Index p = mixtures.coefficients.width;
    const Tail<Real> left = block.lanes(i), right = block.lanes(i + 1);
    const Real *factors = mixtures.coefficients[first], *from = block.at(0, i);
    Vec<Real> sums[J][2];
    for (int j = 0; j < J; ++j) sums[j][0] = sums[j][1] = repeat(mixtures.offsets[first + j]);
    for (Index q = 0; q < p; ++q, from += block.features.width) {
        const Vec<Real> one = left.load(from), two = right.load(from + WIDTH<Real>);
        for (int j = 0; j < J; ++j) {
            sums[j][0] += factors[j * p + q] * one;
            sums[j][1] += factors[j * p + q] * two;
        }
    }
    for (int j = 0; j < J; ++j) {
        store(block.share(first + j, i), sums[j][0]);
        store(block.share(first + j, i + 1), sums[j][1]);
    }
}

// sums[j, q] += <shares of j, feature q> for J components and Q features from `first` and `feature` on.
template <int J, int Q, class Real>
ODECO_INLINE void add_products(const Block<Real>& block, Index first, Index feature, double* sums, Index p) {
    Vec<Real> parts[J][Q]{};
    auto add = [&](Index i, auto read) __attribute__((always_inline)) {
        Vec<Real> left[J];
        for (int j = 0; j < J; ++j) left[j] = load(block.share(first + j, i));
        for (int q = 0; q < Q; ++q) {
            const Vec<Real> right = read(block.at(feature + q, i));
            for (int j = 0; j < J; ++j) parts[j][q] += left[j] * right;
        }
    };
    for (Index i = 0; i + 1 < block.shape.count; ++i)
        add(i, [](const Real* from) __attribute__((always_inline)) { return load(from); });
    add(block.shape.count - 1, [&](const Real* from) __attribute__((always_inline)) { return block.shape.tail.load(from); });
    for (int j = 0; j < J; ++j)
        for (int q = 0; q < Q; ++q) sums[(first + j) * p + feature + q] += double(total<Real>(parts[j][q]));
}

// Densities of registers i and i + 1 of samples, and responsibilities.
template <class Real>
ODECO_INLINE void find_shares(const Block<Real>& block, Index i, Index offset, Index n, Span<const double> weights,
                              const LinearMixtures<Real>& mixtures, const PosteriorSums<Real>& out) {
    const Index k = mixtures.coefficients.n, each = k / mixtures.n_mixtures;
    in_pieces<COMPONENTS>(0, k, [&](auto size, Index j) __attribute__((always_inline)) {
        log_densities<size.value>(mixtures, block, j, i);
    });
    for (Index mixture = 0; mixture < mixtures.n_mixtures; ++mixture)
        for (Index r = i; r < smaller(i + 2, block.shape.count); ++r)
            normalize(block, mixture * each, (mixture + 1) * each, r, weights, out.highest + mixture * n + offset,
                      out.norms + mixture * n + offset);
}

template <class Real> void add_block(const Block<Real>& block, Index k, Index p, const PosteriorSums<Real>& out) {
    in_pieces<ROWS>(0, k, [&](auto rows, Index j) __attribute__((always_inline)) {
        in_pieces<COLUMNS>(0, p, [&](auto columns, Index q) __attribute__((always_inline)) {
            add_products<rows.value, columns.value>(block, j, q, out.sums, p);
        });
    });
    for (Index j = 0; j < k; ++j) out.totals[j] += total_share(block, j);
}

template <class Real>
void posterior_sums(Rows<const Real> features, Range range, Span<const double> weights,
                    const LinearMixtures<Real>& mixtures, const PosteriorSums<Real>& out) {
    constexpr Index PAIR = 2 * WIDTH<Real>;
    const Index n = range.stop - range.start, k = mixtures.coefficients.n;
    if (n == 0 || k == 0) return;
    const Index size = block_size<Real>(n, k, features.n), stride = size + PAIR;
    Scratch<Real> shares(k * stride);  // rows a whole page apart would share their places in the cache
    for (Index offset = 0; offset < n; offset += size) {
        const Block<Real> block{features, range.start + offset, RowShape<Real>(smaller(size, n - offset)), shares, stride};
        const bool more = offset + 2 * size <= n;
        for (Index i = 0; i < block.shape.count; i += 2) {
            for (Index q = 0; more && q < features.n; ++q) {  // of the next block: it comes in time
                __builtin_prefetch(block.at(q, i) + size, 0, 2);
                __builtin_prefetch(block.at(q, i + 1) + size, 0, 2);
            }
            find_shares<Real>(block, i, offset, n, weights, mixtures, out);
        }
        add_block<Real>(block, k, features.n, out);
    }
}

template <class From, class Real>
void posterior_sums_of_rows(Span<const RowBlock<From>> blocks, Range range, Span<const double> weights,
                    const LinearMixtures<Real>& mixtures, const PosteriorSums<Real>& out) {
    constexpr Index PAIR = 2 * WIDTH<Real>;
    const Index n = range.stop - range.start, k = mixtures.coefficients.n, p = mixtures.coefficients.width;
    if (n == 0 || k == 0) return;
    const Index size = block_size<Real>(n, k, p), stride = size + PAIR;
    Scratch<Real> shares(k * stride), columns(p * stride);
    for (Index offset = 0; offset < n; offset += size) {
        const Index start = range.start + offset, there = smaller(size, n - offset), left = n - offset - there;
        fill_features<From, Real>(blocks, start, start + there, {columns, p, stride});
        const Block<Real> block{{columns, p, stride}, 0, RowShape<Real>(there), shares, stride};
        const Span<const double> mine{weights.data + (weights.size > 0 ? start : 0), weights.size};
        for (Index i = 0; i < block.shape.count; i += 2) {
            const Index low = i * WIDTH<Real>, high = smaller(low + PAIR, left);
            fetch_rows(blocks, start + size + low, start + size + high);
            find_shares<Real>(block, i, offset, n, mine, mixtures, out);
        }
        add_block<Real>(block, k, p, out);
    }
}

}  // namespace

const PosteriorKernels<float> posteriors32{posterior_sums<float>};
const PosteriorKernels<double> posteriors64{posterior_sums<double>};
const RowPosteriorKernels<float> row_posteriors32{posterior_sums_of_rows<float, double>};
const RowPosteriorKernels<double> row_posteriors64{posterior_sums_of_rows<double, double>};

}  // namespace odeco::ODECO_ISA
