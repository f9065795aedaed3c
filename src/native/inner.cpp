// Tiles of inner products: many sums at a time, each in a register of its own.
#include "inner.hpp"

namespace odeco::ODECO_ISA {
namespace {

template <int A, class Real>
void add_rows(const Real* left, const Real* right, Index stride, Index size, Index count, double* const* out) {
    Vec<Real> sums[RIGHT][A] = {};
    for (Index t = 0; t < size; t += WIDTH<Real>) {
        Vec<Real> values[RIGHT];
        for (int b = 0; b < RIGHT; ++b) values[b] = load(right + b * stride + t);
        for (int a = 0; a < A; ++a) {
            const Vec<Real> factor = load(left + a * stride + t);
            for (int b = 0; b < RIGHT; ++b) sums[b][a] += factor * values[b];
        }
    }
#pragma GCC unroll 8  // sums that a loop runs over would go through memory
    for (int b = 0; b < RIGHT; ++b) {
        Real totals[A];
        all_totals<A, Real>(sums[b], totals);
        for (int a = 0; a < A && b < count; ++a) out[a][b] += double(totals[a]);
    }
}

}  // namespace

template <class Real>
void add_tile(Index many, const Real* left, const Real* right, Index stride, Index size, Index count, double* const* out) {
    if (many == 4) add_rows<4>(left, right, stride, size, count, out);
    else if (many == 3) add_rows<3>(left, right, stride, size, count, out);
    else if (many == 2) add_rows<2>(left, right, stride, size, count, out);
    else add_rows<1>(left, right, stride, size, count, out);
}

template void add_tile(Index, const float*, const float*, Index, Index, Index, double* const*);
template void add_tile(Index, const double*, const double*, Index, Index, Index, double* const*);

}  // namespace odeco::ODECO_ISA
