// CVB0: responsibilities of words from counts that leave the word's own counts out.
//
// A few words are handled together, in three stages (densities, responsibilities, sums): each stage ends with a sum over
// topics and a division, which one word after the other would wait for. No responsibility is stored, so nothing grows with
// the nonzeros.
#include "kernels.hpp"
#include "shares.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int TOGETHER = 4;  // words

// What one document brings to its words, and what is known of some of them: padded with zeros to whole registers.
template <class Real> struct Document {
    Scratch<Real> totals, own_row, own_word, sums, squares, products, owns;
    explicit Document(Index n)
        : totals(n), own_row(n), own_word(n), sums(n), squares(n), products(TOGETHER * n), owns(TOGETHER * n) {}
};

// sums += c r and squares += c r^2 for U words from p on, r their responsibilities; where asked also the words' counts.
template <int U, bool Count, int N, class Real>
ODECO_INLINE void add_words(const Words<N, Real>& words, Index p, const Document<Real>& mine, Real row_weight,
                            Rows<Real> word_counts) {
    constexpr int W = WIDTH<Real>;
    const Index n = words.registers();
    const Real *totals = mine.totals, *own_row = mine.own_row, *own_word = mine.own_word;
    Real *products = mine.products, *owns = mine.owns, *sums = mine.sums, *squares = mine.squares, count[U], factor[U];
    Vec<Real> norms[U]{}, taken[U]{};
    for (int u = 0; u < U; ++u) count[u] = words.counts.values[p + u];
    for (int u = 0; u < U; ++u)
        for (Index i = 0; i < n; ++i) {
            const Vec<Real> phi = words.part(words.topic(p + u), i), product = load(totals + i * W) * phi;
            const Vec<Real> own = load(own_row + i * W) * phi + load(own_word + i * W);
            norms[u] += product;
            taken[u] += product * own;
            store(products + (u * n + i) * W, product);
            store(owns + (u * n + i) * W, own);
        }
    for (int u = 0; u < U; ++u) {
        const Real norm = total<Real>(norms[u]);
        const Real density = larger(norm - count[u] * total<Real>(taken[u]) / norm, Real(CVB0_FLOOR) * norm);
        Vec<Real> sum{};
        for (Index i = 0; i < n; ++i) {
            const Vec<Real> rest = density + count[u] * load(owns + (u * n + i) * W);
            const Vec<Real> value = load(products + (u * n + i) * W) * reciprocal<Real>(rest);
            sum += value;
            store(products + (u * n + i) * W, value);
        }
        factor[u] = 1 / total<Real>(sum);
    }
    for (Index i = 0; i < n; ++i) {
        Vec<Real> sum = load(sums + i * W), square = load(squares + i * W);
        for (int u = 0; u < U; ++u) {
            const Vec<Real> share = factor[u] * load(products + (u * n + i) * W), part = count[u] * share;
            sum += part;
            square += part * share;
            if constexpr (Count) {
                Real* target = word_counts[words.counts.columns[p + u]];
                store(target, i, n, words.shape.tail, words.part(target, i) + row_weight * part);
            }
        }
        store(sums + i * W, sum);
        store(squares + i * W, square);
    }
}

template <bool Count, int N, class Real>
ODECO_INLINE void add_document(const Words<N, Real>& words, Index d, const Document<Real>& mine, Real row_weight,
                               Rows<Real> word_counts) {
    Index p = words.counts.indptr[d], last = words.counts.indptr[d + 1];
    for (; p + TOGETHER <= last; p += TOGETHER) add_words<TOGETHER, Count>(words, p, mine, row_weight, word_counts);
    for (; p < last; ++p) add_words<1, Count>(words, p, mine, row_weight, word_counts);
}

template <class Real>
ODECO_INLINE void begin_step(const Cvb0Arrays<Real>& arrays, Index d, bool echo, const Document<Real>& mine) {
    const Real *strengths = arrays.strengths[d], *spreads = arrays.spreads[d];
    for (Index i = 0; i < arrays.topics.width; ++i) {
        mine.totals[i] = strengths[i] + arrays.alpha[i];
        Real rest = echo ? 1 - spreads[i] / mine.totals[i] : Real(1);
        mine.own_row[i] = 1 / larger(rest, Real(CVB0_LEAST_REST));
        mine.own_word[i] = mine.totals[i] * arrays.own_word[i] * arrays.row_weights[d];
        mine.sums[i] = mine.squares[i] = 0;
    }
}

template <int N, class Real>
ODECO_INLINE void cvb0_document(const Words<N, Real>& words, const Cvb0Arrays<Real>& arrays, Index d, Index n_iter,
                                bool echo, const Document<Real>& mine) {
    for (Index step = 0; step < n_iter; ++step) {
        begin_step(arrays, d, echo, mine);
        if (step < n_iter - 1) add_document<false>(words, d, mine, Real(1), arrays.word_counts);
        else add_document<true>(words, d, mine, arrays.row_weights[d], arrays.word_counts);
        for (Index i = 0; i < words.topics.width; ++i) {
            arrays.strengths[d][i] = mine.sums[i];
            arrays.spreads[d][i] = larger(mine.sums[i] - mine.squares[i], Real(0));
        }
    }
}

template <class Real>
void cvb0_rows(Csr<Real> counts, const Cvb0Arrays<Real>& arrays, Range range, Index n_em, Index n_iter, bool echo) {
    RowShape<Real> shape(arrays.topics.width);
    Document<Real> mine(shape.padded());
    with_registers(shape.count, [&](auto n) {
        Words<n.value, Real> words{counts, arrays.topics, shape};
        for (Index d = range.start; d < range.stop; ++d) {
            em_steps<n.value, Real>(words, arrays.alpha, d, n_em, arrays.strengths[d], mine.totals, mine.sums);
            cvb0_document<n.value, Real>(words, arrays, d, n_iter, echo, mine);
        }
    });
}

}  // namespace

const Cvb0Kernels<float> cvb32{cvb0_rows<float>};
const Cvb0Kernels<double> cvb64{cvb0_rows<double>};

}  // namespace odeco::ODECO_ISA
