// Eight stretches of a sequence side by side: small matrices whose entries are vectors of `LANES` numbers.
//
// A step of a hidden Markov model is then a product of the k x k transition matrix with a k x LANES one, which fills the
// vector units for any k and hides the latency of a recursion. Messages have kp rows, k padded to a multiple of `PAD` with
// states that never occur; matrices that multiply them have shape (kp, k).
#pragma once

#include "kernels.hpp"
#include "vectors.hpp"

namespace odeco::ODECO_ISA {

inline constexpr int PARTS = LANES / WIDTH<double>;  // registers of one number in every lane

struct Lanes {
    Vec<double> part[PARTS];
    ODECO_INLINE double& operator[](int s) { return reinterpret_cast<double*>(part)[s]; }
};

ODECO_INLINE Lanes everywhere(double x) {
    Lanes out;
    for (int r = 0; r < PARTS; ++r) out.part[r] = repeat(x);
    return out;
}
ODECO_INLINE Lanes load_lanes(const double* p) {
    Lanes out;
    for (int r = 0; r < PARTS; ++r) out.part[r] = load(p + r * WIDTH<double>);
    return out;
}
ODECO_INLINE void store_lanes(double* p, const Lanes& v) {
    for (int r = 0; r < PARTS; ++r) store(p + r * WIDTH<double>, v.part[r]);
}
#define ODECO_LANEWISE(op)                                                                                               \
    ODECO_INLINE Lanes operator op(const Lanes& a, const Lanes& b) {                                                     \
        Lanes out;                                                                                                       \
        for (int r = 0; r < PARTS; ++r) out.part[r] = a.part[r] op b.part[r];                                            \
        return out;                                                                                                      \
    }
ODECO_LANEWISE(+)
ODECO_LANEWISE(-)
ODECO_LANEWISE(*)
ODECO_LANEWISE(/)
#undef ODECO_LANEWISE

ODECO_INLINE Lanes maximum(const Lanes& a, const Lanes& b) {
    Lanes out;
    for (int r = 0; r < PARTS; ++r) out.part[r] = a.part[r] > b.part[r] ? a.part[r] : b.part[r];
    return out;
}

// Whether every lane lies between two numbers; NaN does not.
ODECO_INLINE bool all_inside(const Lanes& v, double low, double high) {
    bool inside = true;
    for (int r = 0; r < PARTS; ++r) {
#if defined(__AVX512F__)
        inside &= (_mm512_cmp_pd_mask(v.part[r], _mm512_set1_pd(low), _CMP_GT_OQ) &
                   _mm512_cmp_pd_mask(v.part[r], _mm512_set1_pd(high), _CMP_LT_OQ)) == 0xff;
#else
        for (int i = 0; i < WIDTH<double>; ++i) inside &= (v.part[r][i] > low) & (v.part[r][i] < high);
#endif
    }
    return inside;
}

// Splits kp rows into blocks of 8, 6, 4 or 2: sums of a block stay in registers, and four of them hide their latency.
template <class Work> ODECO_INLINE void over_blocks(Index kp, Work work) {
    Index row = 0;
    for (; kp - row >= 12 || kp - row == 8; row += 8) work(Constant<8>{}, row);
    if (kp - row >= 10) work(Constant<6>{}, row), row += 6;
    if (kp - row == 6) work(Constant<6>{}, row), row += 6;
    if (kp - row >= 4) work(Constant<4>{}, row), row += 4;
    if (kp - row >= 2) work(Constant<2>{}, row);
}

// finish(row, sum_i matrix[row, i] message[i, :]) for each row.
template <class Finish> ODECO_INLINE void multiply_lanes(Rows<const double> matrix, const double* message, Finish finish) {
    over_blocks(matrix.n, [&](auto n, Index row) __attribute__((always_inline)) {
        Lanes sums[n.value];
        for (int r = 0; r < n.value; ++r) sums[r] = everywhere(0.0);
        for (Index i = 0; i < matrix.width; ++i) {
            Lanes vector = load_lanes(message + i * LANES);
            for (int r = 0; r < n.value; ++r) sums[r] = sums[r] + everywhere(matrix[row + r][i]) * vector;
        }
        for (int r = 0; r < n.value; ++r) finish(row + r, sums[r]);
    });
}

// finish(row, max_i (matrix[row, i] + scores[i, :])): the same product, of maxima and sums.
template <class Finish> ODECO_INLINE void best_lanes(Rows<const double> matrix, const double* scores, Finish finish) {
    over_blocks(matrix.n, [&](auto n, Index row) __attribute__((always_inline)) {
        Lanes best[n.value];
        for (int r = 0; r < n.value; ++r) best[r] = everywhere(-__builtin_inf());
        for (Index i = 0; i < matrix.width; ++i) {
            Lanes vector = load_lanes(scores + i * LANES);
            for (int r = 0; r < n.value; ++r) best[r] = maximum(best[r], everywhere(matrix[row + r][i]) + vector);
        }
        for (int r = 0; r < n.value; ++r) finish(row + r, best[r]);
    });
}

#if defined(__AVX2__)
// Four vectors of four numbers as the rows of a matrix become its columns.
ODECO_INLINE void transpose(__m256d (&v)[4]) {
    __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
    __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
    v[0] = _mm256_permute2f128_pd(a, c, 0x20);
    v[1] = _mm256_permute2f128_pd(b, d, 0x20);
    v[2] = _mm256_permute2f128_pd(a, c, 0x31);
    v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}
ODECO_INLINE __m256i first_of_four(Index n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
// place[:n] += more[:n], for n of 1 to 4. In halves: stores under a mask take many times as long on some machines.
ODECO_INLINE void add_first(Index n, double* place, __m256d more) {
    if (n == 4) return _mm256_storeu_pd(place, _mm256_loadu_pd(place) + more);
    __m128d half = _mm256_castpd256_pd128(more);
    if (n >= 2) {
        _mm_storeu_pd(place, _mm_loadu_pd(place) + half);
        half = _mm256_extractf128_pd(more, 1);
    }
    if (n % 2) place[n - 1] += half[0];
}
ODECO_INLINE Lanes joined(__m256d low, __m256d high) {
#if defined(__AVX512F__)
    return {{_mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1)}};
#else
    return {{low, high}};
#endif
}
#endif

// out[j, s] = rows[chosen[s], j]. Lanes are put together in registers: written number by number, they could not be read
// as a vector before all of them had left the store buffer. Four columns at a time are read as rows and transposed.
ODECO_INLINE void gather_lanes(Rows<const double> rows, const Index* chosen, double* out) {
    const Index k = rows.width;
#if defined(__AVX2__)
    for (Index j = 0; j < k; j += 4) {
        const Index n = smaller<Index>(k - j, 4);
        const __m256i mask = first_of_four(n);
        __m256d low[4], high[4];
        for (int s = 0; s < 4; ++s) {
            low[s] = _mm256_maskload_pd(rows[chosen[s]] + j, mask);
            high[s] = _mm256_maskload_pd(rows[chosen[s + 4]] + j, mask);
        }
        transpose(low);
        transpose(high);
        for (int c = 0; c < 4; ++c)
            if (c < n) store_lanes(out + (j + c) * LANES, joined(low[c], high[c]));
    }
#else
    for (Index j = 0; j < k; ++j) {
        Lanes lanes{};
        for (int s = 0; s < LANES; ++s) lanes.part[s / WIDTH<double>][s % WIDTH<double>] = rows[chosen[s]][j];
        store_lanes(out + j * LANES, lanes);
    }
#endif
}

// sums[chosen[s], j] += message[j, s], lane by lane: two of them may have chosen the same row.
ODECO_INLINE void scatter_lanes(const double* message, const Index* chosen, Rows<double> sums) {
    const Index k = sums.width;
#if defined(__AVX2__)
    for (Index j = 0; j < k; j += 4) {
        const Index n = smaller<Index>(k - j, 4);
        __m256d lanes[2][4];
        for (int c = 0; c < 4; ++c) {
            const double* row = message + smaller(j + c, k - 1) * LANES;
            lanes[0][c] = _mm256_loadu_pd(row);
            lanes[1][c] = _mm256_loadu_pd(row + 4);
        }
        transpose(lanes[0]);
        transpose(lanes[1]);
        for (int s = 0; s < LANES; ++s) add_first(n, sums[chosen[s]] + j, lanes[s / 4][s % 4]);
    }
#else
    for (int s = 0; s < LANES; ++s)
        for (Index j = 0; j < k; ++j) sums[chosen[s]][j] += message[j * LANES + s];
#endif
}

// The step at one position of each lane: its likelihoods, and where a sequence begins. Steps before the first and after
// the last exist only to fill the lanes: each is a sequence of its own without an observation.
struct LoadedStep {
    Index chosen[LANES];
    bool begins[LANES];
    int n_begin;
};

// `load_step` where some lanes are before the first step or after the last.
[[gnu::noinline]] static LoadedStep load_edge(const Steps& steps, Index position, Index length, double* likelihoods,
                                              double unseen) {
    LoadedStep step;
    step.n_begin = 0;
    auto outside = [&](int s) { const Index t = position + s * length; return t < 0 || t >= steps.index.size; };
    for (int s = 0; s < LANES; ++s) {
        step.chosen[s] = outside(s) ? 0 : steps.index[position + s * length];
        step.begins[s] = outside(s) || steps.first[position + s * length];
        step.n_begin += step.begins[s];
    }
    gather_lanes(steps.rows, step.chosen, likelihoods);
    for (int s = 0; s < LANES; ++s)
        for (Index j = 0; outside(s) && j < steps.rows.width; ++j) likelihoods[j * LANES + s] = unseen;
    return step;
}

ODECO_INLINE LoadedStep load_step(const Steps& steps, Index position, Index length, double* likelihoods, double unseen) {
    if (position < 0 || position + (LANES - 1) * length >= steps.index.size)
        return load_edge(steps, position, length, likelihoods, unseen);
    LoadedStep step;
    step.n_begin = 0;
    for (int s = 0; s < LANES; ++s) {
        step.chosen[s] = steps.index[position + s * length];
        step.begins[s] = steps.first[position + s * length] != 0;
        step.n_begin += step.begins[s];
    }
    gather_lanes(steps.rows, step.chosen, likelihoods);
    return step;
}

ODECO_INLINE void fill_lane(double* message, int lane, Index k, const double* values) {
    for (Index j = 0; j < k; ++j) message[j * LANES + lane] = values[j];
}
ODECO_INLINE void fill_lane(double* message, int lane, Index k, double value) {
    for (Index j = 0; j < k; ++j) message[j * LANES + lane] = value;
}

}  // namespace odeco::ODECO_ISA
