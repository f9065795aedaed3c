// The E step of mixtures on some samples at a time, a block that stays in cache: responsibilities, and sums by them.
//
// Samples lie side by side in the lanes of registers, a feature in each row.
#pragma once

#include "exponential.hpp"
#include "kernels.hpp"
#include "vectors.hpp"

namespace odeco::ODECO_ISA {

constexpr Index BLOCK_BYTES = 256 * 1024;  // features and responsibilities of a block: part of the second-level cache

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

template <class Real> ODECO_INLINE double total_share(const Block<Real>& block, Index component) {
    Vec<Real> sum{};
    for (Index i = 0; i < block.shape.count; ++i) sum += load(block.share(component, i));
    return total<Real>(sum);
}

// Samples of a block: so many that features and responsibilities stay in cache; an even number of registers.
template <class Real> ODECO_INLINE Index block_size(Index n, Index k, Index p) {
    constexpr Index PAIR = 2 * WIDTH<Real>;
    const Index fitting = BLOCK_BYTES / Index(sizeof(Real)) / (k + p);
    return (smaller(larger<Index>(fitting, 256), n) + PAIR - 1) / PAIR * PAIR;
}

}  // namespace odeco::ODECO_ISA
