// The step of EM that every loop over the words of a document takes.
#pragma once

#include <limits>

#include "vectors.hpp"

namespace odeco::ODECO_ISA {

// Words and topics word by word, (d, k): one nonzero reads one row. N is the number of registers of a row, or 0.
template <int N, class Real> struct Words {
    Csr<Real> counts;
    Rows<const Real> topics;
    RowShape<Real> shape;

    ODECO_INLINE Index registers() const { return N ? N : shape.count; }
    ODECO_INLINE const Real* topic(Index p) const { return topics[counts.columns[p]]; }
    ODECO_INLINE void prefetch(Index p) const {
        constexpr int LINE = 64 / sizeof(Real);
        for (Index i = 0; i < registers() * WIDTH<Real>; i += LINE) __builtin_prefetch(topic(p) + i);
    }
    ODECO_INLINE Vec<Real> part(const Real* row, Index i) const { return load(row, i, registers(), shape.tail); }
};

template <class Real> inline constexpr Real SMALLEST = Real(1e-30);  // words that no topic has keep documents finite

// `add_shares` for U words: their rows are fetched side by side, and their divisions do not wait for one another.
// A count over a density. A word that no topic has is divided by nothing: finite all the same, so that 0 times it is 0.
template <class Real> ODECO_INLINE Real share_of(Real count, Real density) {
    return smaller(count / larger(density, SMALLEST<Real>), std::numeric_limits<Real>::max());
}

template <int U, int N, class Real>
ODECO_INLINE void add_words(const Words<N, Real>& words, Index p, const Real* weights, Real* sums) {
    const Real* topic[U];
    Vec<Real> parts[U]{};
    Real share[U];
    for (int u = 0; u < U; ++u) topic[u] = words.topic(p + u);
    for (Index i = 0; i < words.registers(); ++i) {
        Vec<Real> weight = load(weights + i * WIDTH<Real>);
        for (int u = 0; u < U; ++u) parts[u] += weight * words.part(topic[u], i);
    }
    for (int u = 0; u < U; ++u) share[u] = share_of(words.counts.values[p + u], total<Real>(parts[u]));
    for (Index i = 0; i < words.registers(); ++i) {
        Vec<Real> sum = load(sums + i * WIDTH<Real>);
        for (int u = 0; u < U; ++u) sum += share[u] * words.part(topic[u], i);
        store(sums + i * WIDTH<Real>, sum);
    }
}

// sums += sum_p values[p] topics[w] / <weights, topics[w]> over the words w of document d; both in padded scratch.
template <int N, class Real>
ODECO_INLINE void add_shares(const Words<N, Real>& words, Index d, const Real* weights, Real* sums) {
    Index p = words.counts.indptr[d], last = words.counts.indptr[d + 1];
    for (; p + 4 <= last; p += 4) add_words<4>(words, p, weights, sums);
    for (; p < last; ++p) add_words<1>(words, p, weights, sums);
}

// Steps of EM for the proportions of document d; `weights` and `sums` are padded scratch.
template <int N, class Real>
ODECO_INLINE void em_steps(const Words<N, Real>& words, const Real* alpha, Index d, Index n_iter, Real* strengths,
                           Real* weights, Real* sums) {
    const Index k = words.topics.width;
    for (Index step = 0; step < n_iter; ++step) {
        for (Index i = 0; i < k; ++i) {
            weights[i] = strengths[i] + alpha[i];
            sums[i] = 0;
        }
        add_shares(words, d, weights, sums);
        for (Index i = 0; i < k; ++i) strengths[i] = sums[i] * weights[i];
    }
}

}  // namespace odeco::ODECO_ISA
