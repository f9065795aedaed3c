// CVB0: responsibilities of words from counts that leave the word's own counts out.
//
// A word is handled while its row of topics is in registers (densities, responsibilities, sums), and so are the sums of its
// document. No responsibility is stored, so nothing grows with the nonzeros.
#include "kernels.hpp"
#include "shares.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int AHEAD = 12;  // words whose topics are fetched before they are needed: as long as a fetch may take

// Words that are handled side by side: their sums over topics and their divisions do not wait for one another.
template <int N> inline constexpr int TOGETHER = N == 1 || N == 2 ? 8 : N == 3 || N == 4 ? 4 : 1;

// Rows of numbers that a document is worked on with: N registers each where that is known, memory otherwise. The last
// rows are those of the words at hand.
enum Row { SUM, SQUARE, VALUE };

template <int N, class Real> struct Room {
    Vec<Real> registers[(VALUE + TOGETHER<N>) * N + 1];
    Real* memory;
    Index n;
    ODECO_INLINE Room(Real* memory_, Index n_) : memory(memory_), n(n_) {}
    ODECO_INLINE Vec<Real> get(int row, Index i) const {
        if constexpr (N) return registers[row * N + i];
        else return load(memory + (row * n + i) * WIDTH<Real>);
    }
    ODECO_INLINE void set(int row, Index i, Vec<Real> v) {
        if constexpr (N) registers[row * N + i] = v;
        else store(memory + (row * n + i) * WIDTH<Real>, v);
    }
};

// work(i) for all registers of a row; unrolled where their number is known, so that rows can stay in registers.
template <int N, class Work> ODECO_INLINE void each(Index n, Work work) {
    if constexpr (N) {
#pragma GCC unroll 8
        for (int i = 0; i < N; ++i) work(i);
    } else {
        for (Index i = 0; i < n; ++i) work(i);
    }
}

// What one document brings to its words, padded with zeros to whole registers.
template <class Real> struct Document {
    Scratch<Real> totals, own_row, own_word, room;
    explicit Document(Index n) : totals(n), own_row(n), own_word(n), room((VALUE + 1) * n) {}
};

// Adds c r to the sums and c r^2 to the squares for the U words from p on, r their responsibilities; where word counts
// are wanted, also to these. After the last word it comes again, with a count of 0.
template <bool Count, int U, int N, class Real>
ODECO_INLINE void add_words(const Words<N, Real>& words, Index p, Index last, const Document<Real>& mine, Real row_weight,
                            Rows<Real> word_counts, Room<N, Real>& room) {
    constexpr int W = WIDTH<Real>;
    const Index n = words.registers();
    const Real *totals = mine.totals, *own_row = mine.own_row, *own_word = mine.own_word, *topic[U];
    Real count[U], norm[U], owned[U], density[U], factor[U];
    Vec<Real> norms[U]{}, owns[U]{}, sums[U]{};
    for (int u = 0; u < U; ++u) {
        const Index word = smaller(p + u, last - 1);
        topic[u] = words.topic(word);
        count[u] = p + u < last ? words.counts.values[word] : Real(0);
    }
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        for (int u = 0; u < U; ++u) {
            const Vec<Real> phi = words.part(topic[u], i), product = load(totals + i * W) * phi;
            norms[u] += product;
            owns[u] += product * (load(own_row + i * W) * phi + load(own_word + i * W));
        }
    });
    all_totals<U>(norms, norm);
    all_totals<U>(owns, owned);
    for (int u = 0; u < U; ++u)
        density[u] = larger(norm[u] - count[u] * owned[u] / norm[u], Real(CVB0_FLOOR) * norm[u]);
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        for (int u = 0; u < U; ++u) {
            const Vec<Real> phi = words.part(topic[u], i), own = load(own_row + i * W) * phi + load(own_word + i * W);
            const Vec<Real> value = load(totals + i * W) * phi * reciprocal<Real>(density[u] + count[u] * own);
            sums[u] += value;
            room.set(VALUE + u, i, value);
        }
    });
    all_totals<U>(sums, factor);
    for (int u = 0; u < U; ++u) factor[u] = 1 / factor[u];
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        for (int u = 0; u < U; ++u) {
            const Vec<Real> share = factor[u] * room.get(VALUE + u, i), counted = count[u] * share;
            room.set(SUM, i, room.get(SUM, i) + counted);
            room.set(SQUARE, i, room.get(SQUARE, i) + counted * share);
            if constexpr (Count) {
                Real* target = word_counts[words.counts.columns[smaller(p + u, last - 1)]];
                store(target, i, n, words.shape.tail, words.part(target, i) + row_weight * counted);
            }
        }
    });
}

template <int N, class Real>
ODECO_INLINE void begin_step(const Words<N, Real>& words, const Cvb0Arrays<Real>& arrays, Index d, bool echo,
                             const Document<Real>& mine) {
    constexpr int W = WIDTH<Real>;
    const Vec<Real> one = repeat(Real(1)), least = repeat(Real(CVB0_LEAST_REST));
    each<N>(words.registers(), [&](Index i) __attribute__((always_inline)) {
        const Vec<Real> strength = words.part(arrays.strengths[d], i) + words.part(arrays.alpha, i);
        // Lanes beyond the last topic have no strength to divide by, and are not seen: topics are 0 there.
        const Vec<Real> rest = echo ? one - words.part(arrays.spreads[d], i) / strength : one;
        store(mine.totals + i * W, strength);
        store(mine.own_row + i * W, one / (rest > least ? rest : least));
        store(mine.own_word + i * W, strength * words.part(arrays.own_word, i) * arrays.row_weights[d]);
    });
}

// One step of a document: new strengths and spreads.
template <bool Count, int N, class Real>
ODECO_INLINE void cvb0_step(const Words<N, Real>& words, const Cvb0Arrays<Real>& arrays, Index d, bool echo,
                            const Document<Real>& mine) {
    const Index n = words.registers();
    begin_step<N>(words, arrays, d, echo, mine);
    Room<N, Real> room(mine.room, n);
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        room.set(SUM, i, Vec<Real>{});
        room.set(SQUARE, i, Vec<Real>{});
    });
    const Index last = words.counts.indptr[d + 1];
    const Real weight = arrays.row_weights[d];
    constexpr int U = TOGETHER<N>;
    Index p = words.counts.indptr[d];
    for (; p < last; p += U) {
        for (int u = 0; u < U; ++u) words.prefetch(smaller(p + u + AHEAD, last - 1));
        add_words<Count, U>(words, p, last, mine, weight, arrays.word_counts, room);
    }
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        const Vec<Real> sum = room.get(SUM, i), spread = sum - room.get(SQUARE, i);
        store(arrays.strengths[d], i, n, words.shape.tail, sum);
        store(arrays.spreads[d], i, n, words.shape.tail, maximum<Real>(spread, Vec<Real>{}));
    });
}

template <class Real>
void cvb0_rows(Csr<Real> counts, const Cvb0Arrays<Real>& arrays, Range range, Index n_em, Index n_iter, bool echo) {
    RowShape<Real> shape(arrays.topics.width);
    Document<Real> mine(shape.padded());
    with_registers(shape.count, [&](auto n) {
        Words<n.value, Real> words{counts, arrays.topics, shape};
        for (Index d = range.start; d < range.stop; ++d) {
            em_steps<n.value, Real>(words, arrays.alpha, d, n_em, arrays.strengths[d], mine.totals, mine.room);
            for (Index step = 1; step < n_iter; ++step) cvb0_step<false>(words, arrays, d, echo, mine);
            if (n_iter > 0) cvb0_step<true>(words, arrays, d, echo, mine);
        }
    });
}

}  // namespace

const Cvb0Kernels<float> cvb32{cvb0_rows<float>};
const Cvb0Kernels<double> cvb64{cvb0_rows<double>};

}  // namespace odeco::ODECO_ISA
