// The E step of mixtures whose log densities are linear in features of a sample, and the sums that their M step needs.
//
// Samples lie side by side in the lanes of registers, a feature in each row. A block of them is handled while it is in
// cache: log densities (a matrix product), responsibilities, and sums of features by responsibilities (another one).
#include "exponential.hpp"
#include "row_blocks.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index BLOCK_BYTES = 256 * 1024;  // features and responsibilities of a block: part of the second-level cache
constexpr int COMPONENTS = REGISTER_BYTES == 64 ? 8 : 4;  // densities of two registers of samples: 16 sums, or 8
constexpr int ROWS = 4, COLUMNS = REGISTER_BYTES == 64 ? 4 : 2;  // sums of a piece of the second product

// Some consecutive samples: their features, and where their responsibilities go.
template <class Real> struct Block {
    Rows<const Real> features;
    Index start;
    RowShape<Real> shape;
    Real* shares;
    Index stride;  // of a component's responsibilities: an even number of registers

    // How many lanes of register i count: none of one after the last.
    ODECO_INLINE Tail<Real> lanes(Index i) const {
        return i + 1 < shape.count ? Tail<Real>{WIDTH<Real>} : i + 1 == shape.count ? shape.tail : Tail<Real>{0};
    }
    ODECO_INLINE const Real* at(Index feature, Index i) const { return features[feature] + start + i * WIDTH<Real>; }
    ODECO_INLINE Real* share(Index component, Index i) const { return shares + component * stride + i * WIDTH<Real>; }
};

// Calls work(constant, place) for all of `n` in steps of N, then of one half of that, and so on.
template <int N, class Work> ODECO_INLINE void in_pieces(Index at, Index n, Work work) {
    for (; at + N <= n; at += N) work(Constant<N>{}, at);
    if constexpr (N > 1) in_pieces<N / 2>(at, n, work);
}

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

template <class Real> ODECO_INLINE Vec<Real> weights_of(Span<const double> weights, Index at, Tail<Real> lanes) {
    Vec<Real> out = repeat(Real(1));
    for (int s = 0; weights.size > 0 && s < lanes.count; ++s) out[s] = Real(weights[at + s]);
    return out;
}

// Responsibilities, times weights, in place of the log densities of components first to last; one register of samples.
template <class Real>
ODECO_INLINE void normalize(const Block<Real>& block, Index first, Index last, Index i, Span<const double> weights,
                            Real* highest, Real* norms) {
    const Tail<Real> lanes = block.lanes(i);
    Vec<Real> top = load(block.share(first, i)), sum{};
    for (Index j = first + 1; j < last; ++j) top = maximum<Real>(top, load(block.share(j, i)));
    for (Index j = first; j < last; ++j) {
        const Vec<Real> value = exponential<Real>(load(block.share(j, i)) - top);
        sum += value;
        store(block.share(j, i), value);
    }
    lanes.store(highest + i * WIDTH<Real>, top);
    lanes.store(norms + i * WIDTH<Real>, sum);
    const Vec<Real> factor = weights_of(weights, block.start + i * WIDTH<Real>, lanes) / sum;
    for (Index j = first; j < last; ++j) {
        store(block.share(j, i), load(block.share(j, i)) * factor);
        // Beyond the last sample is nothing, not even NaN: it will be multiplied by features that are 0 there.
        for (int s = lanes.count; s < WIDTH<Real>; ++s) block.share(j, i)[s] = 0;
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

template <class Real> ODECO_INLINE double total_share(const Block<Real>& block, Index component) {
    Vec<Real> sum{};
    for (Index i = 0; i < block.shape.count; ++i) sum += load(block.share(component, i));
    return total<Real>(sum);
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

// Samples of a block: so many that features and responsibilities stay in cache; an even number of registers.
template <class Real> ODECO_INLINE Index block_size(Index n, Index k, Index p) {
    constexpr Index PAIR = 2 * WIDTH<Real>;
    const Index fitting = BLOCK_BYTES / Index(sizeof(Real)) / (k + p);
    return (smaller(larger<Index>(fitting, 256), n) + PAIR - 1) / PAIR * PAIR;
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
