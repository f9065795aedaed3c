// CVB0: responsibilities of words from counts that leave the word's own counts out.
//
// A word is handled while its row of topics is in registers (densities, responsibilities, sums), and so are the sums of its
// document. No responsibility is stored, so nothing grows with the nonzeros.
#include "kernels.hpp"
#include "shares.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index NEAR = 1 << 20;  // bytes of topics that a core has at hand: fetching a row takes longer than it saves
constexpr int AHEAD = 8;  // words whose sums are fetched before they are added to: as long as a fetch may take

// Words that are handled side by side: their sums over topics and their divisions do not wait for one another.
template <int N> inline constexpr int TOGETHER = N >= 1 && N <= 4 ? 4 : 1;

// What a document collects: N registers each where that is known, memory otherwise.
enum Row { SUM, SQUARE, ROWS };

template <int N, class Real> struct Room {
    Vec<Real> registers[ROWS * N + 1];
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

constexpr int ON_THE_WAY = 3;  // groups of words

// What one document brings to its words, padded with zeros to whole registers, and room for groups of them.
template <class Real> struct Document {
    Scratch<Real> totals, own_row, own_word, room, groups;
    Document(Index n, int together)
        : totals(n), own_row(n), own_word(n), room(ROWS * n), groups(2 * ON_THE_WAY * together * n) {}
};

// Some words on their way through three stages, each of which waits for the sums over topics of the one before. Three
// groups are on their way at a time, so that the work of one fills the waits of the others. After the last word it comes
// again, with a count of 0. `products` and `own` have a row for each word.
template <int U, class Real> struct Group {
    Real *products, *own, *target[U];
    Real count[U], density[U], factor[U];
};

// The first stage: what a word's density is without its own counts, over its count.
template <bool Count, int U, int N, class Real>
ODECO_INLINE void find_densities(const Words<N, Real>& words, Index p, Index last, const Document<Real>& mine,
                                 Rows<Real> word_counts, Group<U, Real>& group) {
    constexpr int W = WIDTH<Real>;
    const Index n = words.registers();
    const Real *totals = mine.totals, *own_row = mine.own_row, *own_word = mine.own_word, *topic[U];
    Real both[2 * U];
    Vec<Real> sums[2 * U]{};
    for (int u = 0; u < U; ++u) {
        const Index word = smaller(p + u, last - 1);
        topic[u] = words.topic(word);
        group.count[u] = p + u < last ? words.counts.values[word] : Real(0);
        if constexpr (Count) {
            group.target[u] = word_counts[words.counts.columns[word]];
            words.prefetch_row(word_counts[words.counts.columns[smaller(p + u + AHEAD, last - 1)]]);
        }
    }
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        for (int u = 0; u < U; ++u) {
            const Vec<Real> phi = words.part(topic[u], i), product = load(totals + i * W) * phi;
            const Vec<Real> own = load(own_row + i * W) * phi + load(own_word + i * W);
            sums[u] += product;
            sums[U + u] += product * own;
            store(group.products + (u * n + i) * W, product);
            store(group.own + (u * n + i) * W, own);
        }
    });
    all_totals<2 * U>(sums, both);
    const Few<U, Real> whole = few<U>(both), count = few<U>(group.count), one = 1 + Few<U, Real>{};
    const Few<U, Real> less = whole - count * few<U>(both + U) / whole, least = Real(CVB0_FLOOR) * whole;
    const Few<U, Real> density = (less > least ? less : least) / (count > 0 ? count : one);
    __builtin_memcpy(group.density, &density, sizeof(density));
}

// The second stage: responsibilities up to a factor, in place of the products, and one over their sum.
template <int U, int N, class Real> ODECO_INLINE void find_values(const Words<N, Real>& words, Group<U, Real>& group) {
    constexpr int W = WIDTH<Real>;
    const Index n = words.registers();
    Real sum[U];
    Vec<Real> sums[U]{};
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        for (int u = 0; u < U; ++u) {
            const Index at = (u * n + i) * W;
            const Vec<Real> value = load(group.products + at) * reciprocal<Real>(group.density[u] + load(group.own + at));
            sums[u] += value;
            store(group.products + at, value);
        }
    });
    all_totals<U>(sums, sum);
    const Few<U, Real> factor = 1 / few<U>(sum);
    __builtin_memcpy(group.factor, &factor, sizeof(factor));
}

// The third: adds c r to the sums and c r^2 to the squares, r the responsibilities; where word counts are wanted, also
// to these.
template <bool Count, int U, int N, class Real>
ODECO_INLINE void add_values(const Words<N, Real>& words, const Group<U, Real>& group, Real row_weight,
                             Room<N, Real>& room) {
    const Index n = words.registers();
    each<N>(n, [&](Index i) __attribute__((always_inline)) {
        for (int u = 0; u < U; ++u) {
            const Vec<Real> share = group.factor[u] * load(group.products + (u * n + i) * WIDTH<Real>);
            const Vec<Real> counted = group.count[u] * share;
            room.set(SUM, i, room.get(SUM, i) + counted);
            room.set(SQUARE, i, room.get(SQUARE, i) + counted * share);
            if constexpr (Count)
                store(group.target[u], i, n, words.shape.tail, words.part(group.target[u], i) + row_weight * counted);
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
    const Index first = words.counts.indptr[d], n_groups = (last - first + U - 1) / U;
    Group<U, Real> groups[ON_THE_WAY];
    for (int g = 0; g < ON_THE_WAY; ++g) {
        groups[g].products = mine.groups + 2 * g * U * n * WIDTH<Real>;
        groups[g].own = groups[g].products + U * n * WIDTH<Real>;
    }
    Group<U, Real> *newest = groups, *middle = groups + 1, *oldest = groups + 2;
    for (Index g = 0; g < n_groups + 2; ++g) {
        // In an order in which what a stage needs has long been found.
        if (g < n_groups) find_densities<Count>(words, first + g * U, last, mine, arrays.word_counts, *newest);
        if (g >= 2) add_values<Count>(words, *oldest, weight, room);
        if (g >= 1 && g <= n_groups) find_values(words, *middle);
        Group<U, Real>* done = oldest;
        oldest = middle;
        middle = newest;
        newest = done;
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
    const bool far = arrays.topics.n * arrays.topics.width * Index(sizeof(Real)) > NEAR;
    with_registers(shape.count, [&](auto n) {
        Document<Real> mine(shape.padded(), TOGETHER<n.value>);
        Words<n.value, Real> words{counts, arrays.topics, shape};
        for (Index d = range.start; d < range.stop; ++d) {
            if (far && d + 1 < range.stop) words.prefetch_document(d + 1);
            if (n_em > 0) em_steps<n.value, Real>(words, arrays.alpha, d, n_em, false, arrays.strengths[d], mine.totals, mine.room);
            for (Index step = 1; step < n_iter; ++step) cvb0_step<false>(words, arrays, d, echo, mine);
            if (n_iter > 0) cvb0_step<true>(words, arrays, d, echo, mine);
        }
    });
}

}  // namespace

const Cvb0Kernels<float> cvb32{cvb0_rows<float>};
const Cvb0Kernels<double> cvb64{cvb0_rows<double>};

}  // namespace odeco::ODECO_ISA
