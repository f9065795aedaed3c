// Rows of numbers as columns.
#pragma once

#include <type_traits>

#include "vectors.hpp"

namespace odeco::ODECO_ISA {

// Differences are taken in the wider of two types: few digits of a large origin are lost.
template <class From, class Real> using Wider = std::conditional_t<(sizeof(From) > sizeof(Real)), From, Real>;

// Column j of the rows start to stop, about an origin where there is one, in row j of `out`, and its squares, where they
// are wanted, in row j of those. Rows of `out` have room for as many numbers, of which those behind the last become 0.
template <class Real, class From>
void fill_columns(Rows<const From> rows, Index width, Range range, const Wider<From, Real>* origin, Index room,
                  Rows<Real> out, Real* squares = nullptr);

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
        const Index padded = RowShape<Real>(stop - start).padded();
        fill_columns<Real>(rows, d, {start, stop}, origin, padded, {data, d, stride});
        return padded;
    }
};

}  // namespace odeco::ODECO_ISA
