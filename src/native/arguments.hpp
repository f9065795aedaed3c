// From Python's arrays to the kernels: dtypes and contiguity by nanobind, shapes and indices here.
//
// Nothing that a kernel indexes with is believed: a wrong argument is a ValueError or an IndexError, never a crash.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string>

#include "views.hpp"

namespace odeco {

namespace nb = nanobind;

template <class T, int N> using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T> using Vector = Array<T, 1>;
template <class T> using Matrix = Array<T, 2>;
template <class T> using Cube = Array<T, 3>;
// Rows that are whole, with any distance between them: some columns of a wider array, say.
template <class T> using Lines = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

// A function of Python without the interpreter lock. Arrays are never converted: a copy would swallow what is written.
template <class T> struct IsArray {
    static constexpr bool value = false;
};
template <class... Options> struct IsArray<nb::ndarray<Options...>> {
    static constexpr bool value = true;
};
template <class Argument> auto annotation() {
    if constexpr (IsArray<std::remove_cv_t<std::remove_reference_t<Argument>>>::value) return nb::arg().noconvert();
    else return nb::arg();
}
template <class Result, class... Arguments>
void define(nb::module_& module, const char* name, Result (*function)(Arguments...)) {
    module.def(name, function, nb::call_guard<nb::gil_scoped_release>(), annotation<Arguments>()...);
}

inline void require(bool truth, const char* message) {
    if (!truth) throw std::invalid_argument(message);
}

inline void require_size(const char* name, Index found, Index wanted) {
    if (found != wanted)
        throw std::invalid_argument(std::string(name) + " must have size " + std::to_string(wanted) + ", has " +
                                    std::to_string(found) + ".");
}

inline void require_at_least(const char* name, Index found, Index wanted) {
    if (found < wanted)
        throw std::invalid_argument(std::string(name) + " must have size " + std::to_string(wanted) +
                                    " at least, has " + std::to_string(found) + ".");
}

template <class Array> Index extent(const Array& array, int axis = 0) { return Index(array.shape(axis)); }

template <class T> Span<T> span(const Vector<T>& array) { return {array.data(), extent(array)}; }
template <class T> Rows<T> rows(const Matrix<T>& array) { return {array.data(), extent(array), extent(array, 1)}; }

template <class T> Rows<T> lines(const char* name, const Lines<T>& array) {
    require(extent(array) == 0 || extent(array, 1) < 2 || array.stride(1) == 1, (std::string(name) + " must have whole rows.").c_str());
    return {array.data(), extent(array), Index(array.stride(0))};
}

template <class T> T* exactly(const char* name, const Vector<T>& array, Index size) {
    require_size(name, extent(array), size);
    return array.data();
}
template <class T> Rows<T> exactly(const char* name, const Matrix<T>& array, Index n, Index width) {
    require_size(name, extent(array), n);
    require_size(name, extent(array, 1), width);
    return rows(array);
}
template <class T> T* exactly(const char* name, const Cube<T>& array, Index a, Index b, Index c) {
    require_size(name, extent(array), a);
    require_size(name, extent(array, 1), b);
    require_size(name, extent(array, 2), c);
    return array.data();
}

// Whether all numbers are at least 0 and below a limit. The sign of v | (limit - 1 - v) tells it without a comparison.
inline void require_below(const char* name, const std::int32_t* values, Index size, Index limit) {
    const std::int32_t last = std::int32_t(limit > INT32_MAX ? INT32_MAX : limit - 1);
    std::uint32_t signs = last < 0 && size > 0 ? 1u << 31 : 0;
    for (Index i = 0; i < size; ++i) signs |= std::uint32_t(values[i]) | (std::uint32_t(last) - std::uint32_t(values[i]));
    if (signs >> 31)
        throw std::out_of_range(std::string(name) + " must lie between 0 and " + std::to_string(limit - 1) + ".");
}

// Ends of consecutive runs: from 0 on, never falling, not beyond a limit.
inline void require_ends(const char* name, const std::int64_t* ends, Index size, Index limit) {
    std::int64_t last = 0;
    bool ordered = true;
    for (Index i = 0; i < size; ++i) {
        ordered &= ends[i] >= last;
        last = ends[i];
    }
    if (!ordered || last > limit)
        throw std::out_of_range(std::string(name) + " must rise from 0 to at most " + std::to_string(limit) + ".");
}

inline Range range_of(Index start, Index stop, Index n) {
    if (start < 0 || start > stop || stop > n)
        throw std::out_of_range("rows " + std::to_string(start) + " to " + std::to_string(stop) + " of " +
                                std::to_string(n) + ".");
    return {start, stop};
}

// The rows start to stop of a CSR matrix with so many columns.
template <class Real>
Csr<Real> csr(const Vector<const std::int64_t>& indptr, const Vector<const std::int32_t>& columns,
              const Vector<const Real>& values, Range range, Index n_columns) {
    require_at_least("indptr", extent(indptr), 1);
    require_at_least("values", extent(values), extent(columns));
    const Index n_rows = extent(indptr) - 1;
    range_of(range.start, range.stop, n_rows);
    require_ends("indptr", indptr.data() + range.start, range.stop - range.start + 1, extent(columns));
    const Index first = indptr.data()[range.start], last = indptr.data()[range.stop];
    require_below("columns", columns.data() + first, last - first, n_columns);
    return {indptr.data(), columns.data(), values.data(), n_rows};
}
template <class Real>
Csr<Real> csr(const Vector<const std::int64_t>& indptr, const Vector<const std::int32_t>& columns,
              const Vector<const Real>& values, Index n_columns) {
    require_at_least("indptr", extent(indptr), 1);
    return csr<Real>(indptr, columns, values, {0, extent(indptr) - 1}, n_columns);
}

void bind_words(nb::module_& module);
void bind_documents(nb::module_& module);
void bind_chains(nb::module_& module);
void bind_short_chains(nb::module_& module);
void bind_step_features(nb::module_& module);
void bind_mixtures(nb::module_& module);
void bind_samples(nb::module_& module);
void bind_tables(nb::module_& module);
void bind_frames(nb::module_& module);
void bind_text(nb::module_& module);

}  // namespace odeco
