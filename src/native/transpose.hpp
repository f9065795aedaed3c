// Rows of numbers into columns, a square of registers at a time.
#pragma once

#include <type_traits>
#include <utility>

#include "vectors.hpp"

namespace odeco::ODECO_ISA {

// Rows that are read to their end before others are begun: memory is fastest in order.
constexpr Index ROWS_AT_A_TIME = 64;

// Lanes that two registers swap, `STEP` apart: one step of a transposition by halves.
template <int STEP, class Real, int... I>
ODECO_INLINE void swap_lanes(Vec<Real>& a, Vec<Real>& b, std::integer_sequence<int, I...>) {
    constexpr int W = WIDTH<Real>;
    const Vec<Real> low = __builtin_shufflevector(a, b, ((I & STEP) ? W + I - STEP : I)...);
    b = __builtin_shufflevector(a, b, ((I & STEP) ? W + I : I + STEP)...);
    a = low;
}

template <int STEP, class Real> ODECO_INLINE void transpose_square(Vec<Real> (&square)[WIDTH<Real>]) {
    for (int i = 0; i < WIDTH<Real>; ++i)
        if (!(i & STEP)) swap_lanes<STEP, Real>(square[i], square[i + STEP], std::make_integer_sequence<int, WIDTH<Real>>{});
    if constexpr (2 * STEP < WIDTH<Real>) transpose_square<2 * STEP, Real>(square);
}

// Differences are taken in the wider of two types: few digits of a large origin are lost.
template <class From, class Real> using Wider = std::conditional_t<(sizeof(From) > sizeof(Real)), From, Real>;

// A register of numbers from `p` on, less those of an origin where there is one.
template <class Real, class From> ODECO_INLINE Vec<Real> centred(const From* p, const Wider<From, Real>* origin) {
    using Wide = Wider<From, Real>;
    typedef From Loaded __attribute__((vector_size(WIDTH<Real> * sizeof(From)), aligned(alignof(From)), may_alias));
    typedef Wide Taken __attribute__((vector_size(WIDTH<Real> * sizeof(Wide)), aligned(alignof(Wide)), may_alias));
    const Taken numbers = __builtin_convertvector(*reinterpret_cast<const Loaded*>(p), Taken);
    return __builtin_convertvector(origin ? numbers - *reinterpret_cast<const Taken*>(origin) : numbers, Vec<Real>);
}

// The first `count` of one, zeros behind them.
template <class Real, class From>
ODECO_INLINE Vec<Real> centred(const From* p, const Wider<From, Real>* origin, int count) {
    if (count == WIDTH<Real>) return centred<Real>(p, origin);
    if constexpr (sizeof(From) == sizeof(Real)) {
        const Tail<Real> lanes{count};
        return origin ? lanes.load(p) - lanes.load(origin) : lanes.load(p);
    }
    Vec<Real> out{};
    for (int s = 0; s < count; ++s) out[s] = Real(origin ? p[s] - origin[s] : p[s]);
    return out;
}

// Calls put(column, first row, numbers) for the columns of rows start to stop, about an origin, a register of rows at a
// time: those beyond the last row are 0.
template <class Real, class From, class Put>
ODECO_INLINE void each_column(Rows<const From> rows, Index width, Index start, Index stop,
                              const Wider<From, Real>* origin, Put put) {
    constexpr int W = WIDTH<Real>;
    // Whole squares stay in registers: their loops have as many rounds at every call.
    auto turn = [&](Index i, Index j, bool whole, int here, int count) __attribute__((always_inline)) {
        Vec<Real> square[W]{};
        const Wider<From, Real>* from = origin ? origin + j : origin;
        for (int s = 0; s < W; ++s)
            if (whole || s < here) square[s] = centred<Real>(rows[i + s] + j, from, whole ? W : count);
        transpose_square<1, Real>(square);
        for (int s = 0; s < W; ++s)
            if (whole || s < count) put(j + s, i - start, square[s]);
    };
    for (Index low = start; low < stop; low += ROWS_AT_A_TIME)
        for (Index j = 0; j < width; j += W)
            for (Index i = low; i < smaller(low + ROWS_AT_A_TIME, stop); i += W)
                if (i + W <= stop && j + W <= width) turn(i, j, true, W, W);
                else turn(i, j, false, int(smaller<Index>(W, stop - i)), int(smaller<Index>(W, width - j)));
}

// Room for some samples in columns, and for a few columns more that loops read and do not use.
template <class Real> struct Columns {
    Index d, stride;
    Scratch<Real> data;

    // A register more than the samples lies between columns: at a whole page all would share their places in the cache.
    Columns(Index d_, Index length, Index spare) : d(d_), stride(length + WIDTH<Real>), data((d + spare) * stride) {}

    ODECO_INLINE Real* operator[](Index j) const { return data + j * stride; }

    // The rows start to stop about an origin, zeros behind them up to whole registers; how many numbers that are.
    template <class From>
    ODECO_INLINE Index fill(Rows<const From> rows, Index start, Index stop, const Wider<From, Real>* origin = nullptr) {
        each_column<Real>(rows, d, start, stop, origin, [&](Index j, Index i, Vec<Real> value)
                          __attribute__((always_inline)) { store(data + j * stride + i, value); });
        return RowShape<Real>(stop - start).padded();
    }
};

}  // namespace odeco::ODECO_ISA
