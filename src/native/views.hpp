// Arrays as the kernels see them: a pointer and a shape. Nothing is owned and nothing is checked here.
//
// Everything here is always inlined: the kernels are compiled once for each instruction set, and a function that the linker
// merges must not carry instructions that another machine does not have. Functions in the namespace of an instruction set
// have names of their own: those that several kernels share are compiled once there, in a file of theirs.
#pragma once

#include <cstddef>
#include <cstdint>

#define ODECO_INLINE __attribute__((always_inline)) inline

namespace odeco {

using Index = std::int64_t;

[[noreturn]] void out_of_memory();  // defined once: kernels of all instruction sets call the same

template <class T> struct Span {
    T* data;
    Index size;
    ODECO_INLINE T& operator[](Index i) const { return data[i]; }
};

template <class T> struct Rows {
    T* data;
    Index n, width;
    ODECO_INLINE T* operator[](Index i) const { return data + i * width; }
};

// Rows from..to of a matrix: threads share the rows of one call.
struct Range {
    Index start, stop;
};

template <class Real> struct Csr {
    const std::int64_t* indptr;
    const std::int32_t* columns;
    const Real* values;
    Index n_rows;
};

template <class T> ODECO_INLINE T larger(T a, T b) { return a > b ? a : b; }
template <class T> ODECO_INLINE T smaller(T a, T b) { return a < b ? a : b; }

}  // namespace odeco
