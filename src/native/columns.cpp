// Columns of rows about an origin.
#include "kernels.hpp"
#include "transpose.hpp"

namespace odeco::ODECO_ISA {
namespace {

template <class From, class Real>
void centred_columns(Rows<const From> rows, Index d, Range range, const From* origin, Rows<Real> out) {
    const Index n = range.stop - range.start;
    each_column<Real>(rows, d, range.start, range.stop, origin, [&](Index j, Index i, Vec<Real> value)
                      __attribute__((always_inline)) {
        const Tail<Real> lanes{int(smaller<Index>(WIDTH<Real>, n - i))};
        lanes.store(out[j] + i, value);
    });
}

}  // namespace

const ColumnKernels<float, float> columns32{centred_columns<float, float>};
const ColumnKernels<double, float> columns64to32{centred_columns<double, float>};
const ColumnKernels<double, double> columns64{centred_columns<double, double>};

}  // namespace odeco::ODECO_ISA
