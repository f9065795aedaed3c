// Columns of rows about an origin, a square of registers at a time.
#include <utility>

#include "kernels.hpp"
#include "transpose.hpp"

namespace odeco::ODECO_ISA {
namespace {

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

// As many numbers of another type as a register has of type Real.
template <class Number, class Real> struct AsManyOf {
    typedef Number type __attribute__((vector_size(WIDTH<Real> * sizeof(Number)), aligned(alignof(Number)), may_alias));
};
template <class Number, class Real> using AsMany = typename AsManyOf<Number, Real>::type;

// All of them from `p` on, or the first `count` and zeros behind them.
template <class Real, class From> ODECO_INLINE AsMany<From, Real> read(const From* p, bool whole, int count) {
    if (whole) return *reinterpret_cast<const AsMany<From, Real>*>(p);
    if constexpr (sizeof(From) == sizeof(Real)) return Tail<Real>{count}.load(p);
    AsMany<From, Real> out{};
    for (int s = 0; s < count; ++s) out[s] = p[s];
    return out;
}

}  // namespace

template <class Real, class From>
void fill_columns(Rows<const From> rows, Index width, Range range, const Wider<From, Real>* origin, Index room,
                  Rows<Real> out, Real* squares) {
    constexpr int W = WIDTH<Real>;
    const auto [start, stop] = range;
    // Whole squares stay in registers: their loops have as many rounds at every call.
    auto turn = [&](Index i, Index j, bool whole, int count) __attribute__((always_inline)) {
        using Wide = Wider<From, Real>;
        const AsMany<Wide, Real> about = origin ? read<Real>(origin + j, whole, count) : AsMany<Wide, Real>{};
        Vec<Real> square[W];
        for (int s = 0; s < W; ++s) {
            const auto row = __builtin_convertvector(read<Real>(rows[i + s] + j, whole, count), AsMany<Wide, Real>);
            // Of one type and without an origin bits stay what they are: they may be no numbers.
            if (sizeof(From) == sizeof(Real) && !origin) square[s] = __builtin_convertvector(row, Vec<Real>);
            else square[s] = __builtin_convertvector(row - about, Vec<Real>);
        }
        transpose_square<1, Real>(square);
        const Index place = j * out.width + i - start;
        for (int s = 0; s < W; ++s)
            if (whole || s < count) store(out.data + place + s * out.width, square[s]);
        for (int s = 0; squares && s < W; ++s)
            if (whole || s < count) store(squares + place + s * out.width, square[s] * square[s]);
    };
    const Index turned = start + (stop - start) / W * W;
    for (Index low = start; low < turned; low += ROWS_AT_A_TIME)
        for (Index j = 0; j < width; j += W)
            for (Index i = low; i < smaller(low + ROWS_AT_A_TIME, turned); i += W)
                if (j + W <= width) turn(i, j, true, W);
                else turn(i, j, false, int(width - j));
    for (Index j = 0; j < width; ++j)
        for (Index i = turned; i < start + room; ++i) {
            const Real value = i < stop ? Real(origin ? rows[i][j] - origin[j] : rows[i][j]) : Real(0);
            out[j][i - start] = value;
            if (squares) squares[j * out.width + i - start] = value * value;
        }
}

template void fill_columns(Rows<const float>, Index, Range, const float*, Index, Rows<float>, float*);
template void fill_columns(Rows<const float>, Index, Range, const double*, Index, Rows<double>, double*);
template void fill_columns(Rows<const double>, Index, Range, const double*, Index, Rows<float>, float*);
template void fill_columns(Rows<const double>, Index, Range, const double*, Index, Rows<double>, double*);

namespace {

template <class From, class Real>
void centred_columns(Rows<const From> rows, Index d, Range range, const From* origin, Rows<Real> out) {
    fill_columns<Real>(rows, d, range, origin, range.stop - range.start, out);
}

}  // namespace

const ColumnKernels<float, float> columns32{centred_columns<float, float>};
const ColumnKernels<double, float> columns64to32{centred_columns<double, float>};
const ColumnKernels<double, double> columns64{centred_columns<double, double>};

}  // namespace odeco::ODECO_ISA
