// Blocks of columns of the same samples, each with an origin of its own.
#pragma once

#include "kernels.hpp"
#include "transpose.hpp"

namespace odeco::ODECO_ISA {

// The columns of some rows of all blocks, with squares where they are asked for, a feature in each row of `columns`.
template <class From, class Real>
ODECO_INLINE void fill_features(Span<const RowBlock<From>> blocks, Index start, Index stop, Rows<Real> columns) {
    Index first = 0;
    for (Index b = 0; b < blocks.size; ++b) {
        const RowBlock<From>& block = blocks[b];
        Real* values = columns[first];
        fill_columns<Real>(block.rows, block.d, {start, stop}, block.origin, RowShape<Real>(stop - start).padded(),
                           {values, block.d, columns.width}, block.squares ? values + block.d * columns.width : nullptr);
        first += block.d * (1 + block.squares);
    }
}

// Asks for the rows start to stop, so that they are in cache when they are read.
template <class From> ODECO_INLINE void fetch_rows(Span<const RowBlock<From>> blocks, Index start, Index stop) {
    constexpr Index LINE = 64 / Index(sizeof(From));
    for (Index b = 0; b < blocks.size; ++b)
        for (Index r = start; r < stop; ++r)
            for (Index j = 0; j < blocks[b].d; j += LINE) __builtin_prefetch(blocks[b].rows[r] + j, 0, 2);
}

}  // namespace odeco::ODECO_ISA
