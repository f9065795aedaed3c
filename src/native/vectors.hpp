// Vector registers of the instruction set that a file is compiled for, by the compiler's vector types.
//
// A row of numbers is handled as whole registers, the last one of which may be partial: it is read and written under a
// mask, so that rows of any width need no padding and no loop over what is left. Lanes beyond the end are zero.
#pragma once

#include <cstdlib>

#include "views.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace odeco::ODECO_ISA {

#if defined(__AVX512F__)
inline constexpr int REGISTER_BYTES = 64;
#elif defined(__AVX__)
inline constexpr int REGISTER_BYTES = 32;
#else
inline constexpr int REGISTER_BYTES = 16;  // SSE2, NEON
#endif

template <class Real> struct VectorOf {
    typedef Real type __attribute__((vector_size(REGISTER_BYTES)));
    typedef Real loose __attribute__((vector_size(REGISTER_BYTES), aligned(alignof(Real)), may_alias));
};
template <class Real> using Vec = typename VectorOf<Real>::type;
template <class Real> inline constexpr int WIDTH = REGISTER_BYTES / sizeof(Real);

template <class Real> ODECO_INLINE Vec<Real> load(const Real* p) {
    return *reinterpret_cast<const typename VectorOf<Real>::loose*>(p);
}
template <class Real> ODECO_INLINE void store(Real* p, Vec<Real> v) {
    *reinterpret_cast<typename VectorOf<Real>::loose*>(p) = v;
}
template <class Real> ODECO_INLINE Vec<Real> repeat(Real x) { return x - Vec<Real>{}; }

template <class Real> ODECO_INLINE Vec<Real> maximum(Vec<Real> a, Vec<Real> b) { return a > b ? a : b; }

// The sum of all lanes, by halves: the same order on every call.
template <class Real> ODECO_INLINE Real total(Vec<Real> v) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Real) == 4) return _mm512_reduce_add_ps(v);
    else return _mm512_reduce_add_pd(v);
#elif defined(__AVX__)
    if constexpr (sizeof(Real) == 4) {
        __m128 half = _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
        half += _mm_movehl_ps(half, half);
        return half[0] + half[1];
    } else {
        __m128d half = _mm256_castpd256_pd128(v) + _mm256_extractf128_pd(v, 1);
        return half[0] + half[1];
    }
#else
    if constexpr (sizeof(Real) == 4) return (v[0] + v[2]) + (v[1] + v[3]);
    else return v[0] + v[1];
#endif
}

#if defined(__AVX__)
// The sum of the two halves of a register, as half a register.
ODECO_INLINE __m256 halved(__m256 v) { return v; }
#if defined(__AVX512F__)
ODECO_INLINE __m256 halved(__m512 v) { return _mm512_castps512_ps256(v) + _mm512_extractf32x8_ps(v, 1); }
#endif
ODECO_INLINE __m128 quartered(__m256 v) { return _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1); }
#endif

// The sums of all lanes of U registers; four or eight of single numbers are added up side by side.
template <int U, class Real> ODECO_INLINE void all_totals(const Vec<Real> (&v)[U], Real (&out)[U]) {
#if defined(__AVX__)
    if constexpr (sizeof(Real) == 4 && U == 4) {
        __m128 part[4];
        for (int u = 0; u < 4; ++u) part[u] = quartered(halved(v[u]));
        return _mm_storeu_ps(out, _mm_hadd_ps(_mm_hadd_ps(part[0], part[1]), _mm_hadd_ps(part[2], part[3])));
    }
    if constexpr (sizeof(Real) == 4 && U == 8) {
        __m256 part[8];
        for (int u = 0; u < 8; ++u) part[u] = halved(v[u]);
        for (int u = 0; u < 4; ++u) part[u] = _mm256_hadd_ps(part[2 * u], part[2 * u + 1]);
        for (int u = 0; u < 2; ++u) part[u] = _mm256_hadd_ps(part[2 * u], part[2 * u + 1]);
        const __m256 low = _mm256_permute2f128_ps(part[0], part[1], 0x20);
        return _mm256_storeu_ps(out, low + _mm256_permute2f128_ps(part[0], part[1], 0x31));
    }
#endif
    for (int u = 0; u < U; ++u) out[u] = total<Real>(v[u]);
}

// A few numbers in one register: the compiler does not find by itself that their divisions are one.
template <int U, class Real> struct FewOf {
    typedef Real type __attribute__((vector_size(U * sizeof(Real))));
};
template <int U, class Real> using Few = typename FewOf<U, Real>::type;
template <int U, class Real> ODECO_INLINE Few<U, Real> few(const Real* numbers) {
    Few<U, Real> found;
    __builtin_memcpy(&found, numbers, sizeof(found));
    return found;
}

template <class Real> ODECO_INLINE Real largest(Vec<Real> v) {
    Real most = v[0];
    for (int i = 1; i < WIDTH<Real>; ++i) most = larger(most, Real(v[i]));
    return most;
}

// 1 / v, of single numbers by an estimate and a step of Newton's: to two units in the last place, without a division.
template <class Real> ODECO_INLINE Vec<Real> reciprocal(Vec<Real> v) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Real) == 4) {
        const Vec<Real> guess = _mm512_rcp14_ps(v);
        return guess * (2 - v * guess);
    }
#elif defined(__AVX__)
    if constexpr (sizeof(Real) == 4) {
        const Vec<Real> guess = _mm256_rcp_ps(v);
        return guess * (2 - v * guess);
    }
#endif
    return 1 / v;
}

// The last register of a row: how many of its lanes count.
template <class Real> struct Tail {
    int count;

#if defined(__AVX512F__)
    ODECO_INLINE Vec<Real> load(const Real* p) const {
        if constexpr (sizeof(Real) == 4) return _mm512_maskz_loadu_ps(mask(), p);
        else return _mm512_maskz_loadu_pd(mask(), p);
    }
    ODECO_INLINE void store(Real* p, Vec<Real> v) const {
        if constexpr (sizeof(Real) == 4) _mm512_mask_storeu_ps(p, mask(), v);
        else _mm512_mask_storeu_pd(p, mask(), v);
    }
    ODECO_INLINE auto mask() const {
        if constexpr (sizeof(Real) == 4) return __mmask16((1u << count) - 1);
        else return __mmask8((1u << count) - 1);
    }
#elif defined(__AVX2__)
    ODECO_INLINE Vec<Real> load(const Real* p) const {
        if (count == WIDTH<Real>) return ODECO_ISA::load(p);  // masks take longer, to write above all
        if constexpr (sizeof(Real) == 4) return _mm256_maskload_ps(p, mask());
        else return _mm256_maskload_pd(p, mask());
    }
    ODECO_INLINE void store(Real* p, Vec<Real> v) const {
        if (count == WIDTH<Real>) return ODECO_ISA::store(p, v);
        if constexpr (sizeof(Real) == 4) _mm256_maskstore_ps(p, mask(), v);
        else _mm256_maskstore_pd(p, mask(), v);
    }
    ODECO_INLINE __m256i mask() const {
        if constexpr (sizeof(Real) == 4)
            return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        else return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
    }
#else
    ODECO_INLINE Vec<Real> load(const Real* p) const {
        if (count == WIDTH<Real>) return ODECO_ISA::load(p);
        Vec<Real> v{};
        for (int i = 0; i < count; ++i) v[i] = p[i];
        return v;
    }
    ODECO_INLINE void store(Real* p, Vec<Real> v) const {
        if (count == WIDTH<Real>) return ODECO_ISA::store(p, v);
        for (int i = 0; i < count; ++i) p[i] = v[i];
    }
#endif
};

// How many registers a row takes: `count` of them, the last one with `tail` lanes (1 to all).
template <class Real> struct RowShape {
    Index count;
    Tail<Real> tail;
    explicit ODECO_INLINE RowShape(Index width)
        : count((width + WIDTH<Real> - 1) / WIDTH<Real>), tail{int(width - (count - 1) * WIDTH<Real>)} {}
    ODECO_INLINE Index padded() const { return count * WIDTH<Real>; }
};

// Register i of the `count` of a row; where the count is a constant, loops over them unroll and rows stay in registers.
template <class Real> ODECO_INLINE Vec<Real> load(const Real* row, Index i, Index count, Tail<Real> tail) {
    const Real* p = row + i * WIDTH<Real>;
    return i + 1 < count ? load(p) : tail.load(p);
}
template <class Real> ODECO_INLINE void store(Real* row, Index i, Index count, Tail<Real> tail, Vec<Real> v) {
    Real* p = row + i * WIDTH<Real>;
    if (i + 1 < count) store(p, v);
    else tail.store(p, v);
}

// Zeroed memory that begins on a cache line, gone at the end of the call.
template <class Real> class Scratch {
  public:
    explicit ODECO_INLINE Scratch(Index size)
        : data_(static_cast<Real*>(std::aligned_alloc(64, (larger<Index>(size, 1) * sizeof(Real) + 63) / 64 * 64))) {
        if (!data_) out_of_memory();
        __builtin_memset(data_, 0, larger<Index>(size, 1) * sizeof(Real));
    }
    ODECO_INLINE ~Scratch() { std::free(data_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ODECO_INLINE operator Real*() const { return data_; }

  private:
    Real* data_;
};

// Calls work(constant) with the number of registers of a row, 0 standing for "as many as there are".
template <int N> struct Constant {
    static constexpr int value = N;
};
template <class Work> ODECO_INLINE void with_registers(Index count, Work work) {
    switch (count) {
        case 1: return work(Constant<1>{});
        case 2: return work(Constant<2>{});
        case 3: return work(Constant<3>{});
        case 4: return work(Constant<4>{});
        case 8: return work(Constant<8>{});
        default: return work(Constant<0>{});
    }
}
// The numbers of registers that it knows, for functions that are compiled in a file of their own.
#define ODECO_EACH_REGISTERS(DO) DO(1) DO(2) DO(3) DO(4) DO(8) DO(0)

}  // namespace odeco::ODECO_ISA
