// Inner products of rows of numbers, several at a time.
#pragma once

#include "vectors.hpp"

namespace odeco::ODECO_ISA {

constexpr int LEFT = 4, RIGHT = REGISTER_BYTES == 64 ? 6 : 3;  // a tile of inner products fills the registers

// Inner products of `many` rows (1 to LEFT) with RIGHT rows, `stride` apart and of whole registers: those of row a with the
// first `count` of the others are added to `out[a]`.
template <class Real>
void add_tile(Index many, const Real* left, const Real* right, Index stride, Index size, Index count, double* const* out);

// Of `n_left` rows with `n_right`: that of rows a and b is added to place(a)[b]. RIGHT - 1 rows behind the last are read.
template <class Real, class Place>
ODECO_INLINE void add_inner(const Real* left, Index n_left, const Real* right, Index n_right, Index stride, Index size,
                            Place place) {
    for (Index b = 0; b < n_right; b += RIGHT)
        for (Index a = 0; a < n_left; a += LEFT) {
            double* out[LEFT] = {};
            const Index many = smaller<Index>(LEFT, n_left - a), count = smaller<Index>(RIGHT, n_right - b);
            for (Index i = 0; i < many; ++i) out[i] = place(a + i) + b;
            add_tile<Real>(many, left + a * stride, right + b * stride, stride, size, count, out);
        }
}

template <class Real> ODECO_INLINE void multiply(const Real* first, const Real* second, Index size, Real* out) {
    for (Index t = 0; t < size; t += WIDTH<Real>) store(out + t, load(first + t) * load(second + t));
}

template <class Real> ODECO_INLINE Real sum_of(const Real* row, Index size) {
    Vec<Real> sum{};
    for (Index t = 0; t < size; t += WIDTH<Real>) sum += load(row + t);
    return total<Real>(sum);
}

// Products of rows c and e >= c with each of `n_left` rows, by blocks of matrices (d, d) of which the part from the diagonal
// on is added to; `products` is room for d rows and those that are read behind them.
template <class Real>
ODECO_INLINE void add_crossed(const Real* left, Index n_left, const Real* rows, Index d, Index stride, Index size,
                              Real* products, double* out) {
    for (Index c = 0; c < d; ++c) {
        for (Index e = c; e < d; ++e)
            multiply<Real>(rows + c * stride, rows + e * stride, size, products + (e - c) * stride);
        add_inner<Real>(left, n_left, products, d - c, stride, size,
                          [&](Index i) { return out + (i * d + c) * d + c; });
    }
}

// Symmetric matrices from what lies above their diagonals.
ODECO_INLINE void mirror(double* matrices, Index n, Index d) {
    for (Index i = 0; i < n; ++i)
        for (Index a = 0; a < d; ++a)
            for (Index b = 0; b < a; ++b) matrices[(i * d + a) * d + b] = matrices[(i * d + b) * d + a];
}

}  // namespace odeco::ODECO_ISA
