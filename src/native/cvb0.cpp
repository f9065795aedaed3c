// CVB0: responsibilities of words from counts that leave the word's own counts out.
//
// A word is handled while its row of topics is in registers (densities, responsibilities, sums), and so are the sums of its
// document. No responsibility is stored, so nothing grows with the nonzeros.
#include "kernels.hpp"
#include "shares.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int AHEAD = 6;  // words whose topics are fetched before they are needed: a word takes as long as a few fetches

// Rows of numbers that a document is worked on with: N registers each where that is known, memory otherwise.
enum Row { PRODUCT, OWN, SUM, SQUARE };

template <int N, class Real> struct Room {
    Vec<Real> registers[4 * N + 1];
    Real* memory;
    Index n;
    ODECO_INLINE Room(Real* memory_, Index n_) : memory(memory_), n(n_) {}
    ODECO_INLINE Vec<Real> get(Row row, Index i) const {
        if constexpr (N) return registers[row * N + i];
        else return load(memory + (row * n + i) * WIDTH<Real>);
    }
    ODECO_INLINE void set(Row row, Index i, Vec<Real> v) {
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
    explicit Document(Index n) : totals(n), own_row(n), own_word(n), room(4 * n) {}
};

// Adds c r to the sums and c r^2 to the squares for the word at p, r its responsibilities; with a target also its counts.
template <bool Count, int N, class Real>
ODECO_INLINE void add_word(const Words<N, Real>& words, Index p, const Document<Real>& mine, Real row_weight, Real* target,
                           Room<N, Real>& room) {
    constexpr int W = WIDTH<Real>;
    const Index n = words.registers();
    const Real *topic = words.topic(p), count = words.counts.values[p];
    const Real *totals = mine.totals, *own_row = mine.own_row, *own_word = mine.own_word;
    Vec<Real> norms{}, owns{}, sum{};
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        const Vec<Real> phi = words.part(topic, i), product = load(totals + i * W) * phi;
        const Vec<Real> own = load(own_row + i * W) * phi + load(own_word + i * W);
        norms += product;
        owns += product * own;
        room.set(PRODUCT, i, product);
        room.set(OWN, i, own);
    });
    const Real norm = total<Real>(norms);
    const Real density = larger(norm - count * total<Real>(owns) / norm, Real(CVB0_FLOOR) * norm);
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        const Vec<Real> value = room.get(PRODUCT, i) / (density + count * room.get(OWN, i));
        sum += value;
        room.set(PRODUCT, i, value);
    });
    const Real factor = 1 / total<Real>(sum), scale = count * factor, square = scale * factor;
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        const Vec<Real> value = room.get(PRODUCT, i);
        room.set(SUM, i, room.get(SUM, i) + scale * value);
        room.set(SQUARE, i, room.get(SQUARE, i) + square * value * value);
        if constexpr (Count)
            store(target, i, n, words.shape.tail, words.part(target, i) + row_weight * scale * value);
    });
}

template <class Real>
ODECO_INLINE void begin_step(const Cvb0Arrays<Real>& arrays, Index d, bool echo, const Document<Real>& mine) {
    const Real *strengths = arrays.strengths[d], *spreads = arrays.spreads[d];
    Real *totals = mine.totals, *own_row = mine.own_row, *own_word = mine.own_word;
    for (Index i = 0; i < arrays.topics.width; ++i) {
        totals[i] = strengths[i] + arrays.alpha[i];
        Real rest = echo ? 1 - spreads[i] / totals[i] : Real(1);
        own_row[i] = 1 / larger(rest, Real(CVB0_LEAST_REST));
        own_word[i] = totals[i] * arrays.own_word[i] * arrays.row_weights[d];
    }
}

// One step of a document: new strengths and spreads.
template <bool Count, int N, class Real>
ODECO_INLINE void cvb0_step(const Words<N, Real>& words, const Cvb0Arrays<Real>& arrays, Index d, bool echo,
                            const Document<Real>& mine) {
    const Index n = words.registers();
    begin_step(arrays, d, echo, mine);
    Room<N, Real> room(mine.room, n);
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        room.set(SUM, i, Vec<Real>{});
        room.set(SQUARE, i, Vec<Real>{});
    });
    const Index last = words.counts.indptr[d + 1];
    for (Index p = words.counts.indptr[d]; p < last; ++p) {
        words.prefetch(smaller(p + AHEAD, last - 1));
        add_word<Count>(words, p, mine, arrays.row_weights[d], arrays.word_counts[words.counts.columns[p]], room);
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
