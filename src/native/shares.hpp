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
    ODECO_INLINE void prefetch_row(const Real* row) const {
        constexpr int LINE = 64 / sizeof(Real);
        for (Index i = 0; i < registers() * WIDTH<Real>; i += LINE) __builtin_prefetch(row + i);
    }
    // The topics of all words of a document, which is next: those of a document are read again and again.
    ODECO_INLINE void prefetch_document(Index d) const {
        for (Index p = counts.indptr[d]; p < counts.indptr[d + 1]; ++p) prefetch_row(topic(p));
    }
    ODECO_INLINE Vec<Real> part(const Real* row, Index i) const { return load(row, i, registers(), shape.tail); }
};

template <class Real> inline constexpr Real SMALLEST = Real(1e-30);  // words that no topic has keep documents finite

// `add_shares` for U words: their rows are fetched side by side, and their divisions do not wait for one another. Where they
// are not whole, the last word comes again after itself, with a count of 0.
// A word that no topic has is divided by nothing: its share is finite all the same, so that 0 times it is 0.
template <bool Whole, int U, int N, class Real>
ODECO_INLINE void add_words(const Words<N, Real>& words, Index p, Index last, const Real* weights, Real* sums) {
    const Real* topic[U];
    Vec<Real> parts[U]{};
    Real density[U], count[U];
    for (int u = 0; u < U; ++u) {
        const Index word = Whole ? p + u : smaller(p + u, last - 1);
        topic[u] = words.topic(word);
        count[u] = Whole || p + u < last ? words.counts.values[word] : Real(0);
    }
    for (Index i = 0; i < words.registers(); ++i) {
        Vec<Real> weight = load(weights + i * WIDTH<Real>);
        for (int u = 0; u < U; ++u) parts[u] += weight * words.part(topic[u], i);
    }
    all_totals<U>(parts, density);
    const Few<U, Real> none{}, most = none + std::numeric_limits<Real>::max(), least = none + SMALLEST<Real>;
    const Few<U, Real> found = few<U>(density), whole = few<U>(count) / (found > least ? found : least);
    const Few<U, Real> share = whole < most ? whole : most;
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
    for (; p + 4 <= last; p += 4) add_words<true, 4>(words, p, last, weights, sums);
    if (p < last) add_words<false, 4>(words, p, last, weights, sums);
}

// Steps of EM for the proportions of document d, or of variational inference; `weights` and `sums` are padded scratch. The
// words come by value: nobody else knows where they are, so that nothing that is stored can change them.
template <int N, class Real>
void em_steps(Words<N, Real> words, const Real* alpha, Index d, Index n_iter, bool variational, Real* strengths,
              Real* weights, Real* sums);

double exp_digamma(double x);

// What a step of `em_steps` begins with: weights of topics, up to a factor, and sums that are 0.
template <class Real>
ODECO_INLINE void begin_em_step(const Real* strengths, const Real* alpha, Index k, bool variational, Real* weights,
                                Real* sums) {
    for (Index i = 0; i < k; ++i) {
        weights[i] = strengths[i] + alpha[i];
        sums[i] = 0;
    }
    if (variational)
        for (Index i = 0; i < k; ++i) weights[i] = Real(exp_digamma(weights[i]));
}

}  // namespace odeco::ODECO_ISA
