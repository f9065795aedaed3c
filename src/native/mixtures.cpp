// Responsibilities from log joint densities: exponentials of many numbers, normalized over components.
#include "exponential.hpp"
#include "kernels.hpp"

namespace odeco::ODECO_ISA {
namespace {

// One register of columns: joint (k, m) becomes responsibilities; the largest entry and the sum of each column.
template <int N, class Real>
ODECO_INLINE void normalize_columns(Rows<Real> joint, Index at, RowShape<Real> shape, Real* highest, Real* totals) {
    auto each = [](auto work) __attribute__((always_inline)) { for (int i = 0; i < N; ++i) work(i); };
    Vec<Real> top[N], sums[N]{};
    each([&](int i) { top[i] = load(joint[0], at + i, shape.count, shape.tail); });
    for (Index j = 1; j < joint.n; ++j)
        each([&](int i) { top[i] = maximum<Real>(top[i], load(joint[j], at + i, shape.count, shape.tail)); });
    for (Index j = 0; j < joint.n; ++j)
        each([&](int i) {
            Vec<Real> value = exponential<Real>(load(joint[j], at + i, shape.count, shape.tail) - top[i]);
            sums[i] += value;
            store(joint[j], at + i, shape.count, shape.tail, value);
        });
    each([&](int i) {
        store(highest, at + i, shape.count, shape.tail, top[i]);
        store(totals, at + i, shape.count, shape.tail, sums[i]);
        sums[i] = Real(1) / sums[i];
    });
    for (Index j = 0; j < joint.n; ++j)
        each([&](int i) {
            Vec<Real> value = load(joint[j], at + i, shape.count, shape.tail);
            store(joint[j], at + i, shape.count, shape.tail, value * sums[i]);
        });
}

template <class Real> void normalize(Rows<Real> joint, Real* highest, Real* totals) {
    if (joint.n == 0 || joint.width == 0) return;
    RowShape<Real> shape(joint.width);
    Index at = 0;
    for (; at + 4 <= shape.count; at += 4) normalize_columns<4, Real>(joint, at, shape, highest, totals);
    for (; at < shape.count; ++at) normalize_columns<1, Real>(joint, at, shape, highest, totals);
}

}  // namespace

const MixtureKernels<float> mixture32{normalize<float>};
const MixtureKernels<double> mixture64{normalize<double>};

}  // namespace odeco::ODECO_ISA
