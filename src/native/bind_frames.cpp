// Python's door to `frames.cpp`.
#include <nanobind/stl/pair.h>

#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

std::pair<Index, double> iterate_frame(const Vector<const double>& tensor, Index order, Index n_iter, double tol,
                                       double shift, const Matrix<double>& frame, const Vector<double>& values,
                                       const Matrix<double>& mapped) {
    const Index n = extent(frame), r = extent(frame, 1);
    require(n >= 1 && r >= 1 && r <= n && n <= 1024, "a frame has at least as many rows as columns, and at most 1024.");
    require(order == 3 || order == 4, "order must be 3 or 4.");
    require(n_iter >= 1, "n_iter must be above 0.");
    const Index size = order == 3 ? n * n * n : n * n * n * n;
    const SmallTensor given{exactly("tensor", tensor, size), n, order, size};
    exactly("values", values, r);
    exactly("mapped", mapped, n, r);
    const FrameEnd end =
        frames().iterate_frame(given, r, {n_iter, tol, shift}, frame.data(), values.data(), mapped.data());
    return {end.n_iter, end.change};
}

}  // namespace

void bind_frames(nb::module_& module) { define(module, "iterate_frame", iterate_frame); }

}  // namespace odeco
