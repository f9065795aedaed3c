// Responsibilities from log joint densities: exponentials of many numbers, normalized over components.
#include "kernels.hpp"
#include "vectors.hpp"

namespace odeco::ODECO_ISA {
namespace {

// Constants of exp(x) = 2^n exp(r): below `lowest` it is 0, `magic` rounds to an integer n that stays in the low bits. Bits are unsigned: they wrap where the result is 0 anyway.
template <class Real> struct Exponential;
template <> struct Exponential<float> {
    using Bits = std::uint32_t;
    static constexpr int terms = 7, shift = 23;  // the next term of the series is below half a unit in the last place
    static constexpr float lowest = -87.0f, magic = 12582912.0f, high = 0.693359375f, low = -2.12194440e-4f;
};
template <> struct Exponential<double> {
    using Bits = std::uint64_t;
    static constexpr int terms = 13, shift = 52;
    static constexpr double lowest = -708.0, magic = 6755399441055744.0;
    static constexpr double high = 6.93147180369123816490e-01, low = 1.90821492927058770002e-10;
};

// exp(x) for x that is not above 0; -inf gives 0 and NaN stays.
template <class Real> ODECO_INLINE Vec<Real> exponential(Vec<Real> x) {
    using Constants = Exponential<Real>;
    typedef typename Constants::Bits Bits __attribute__((vector_size(REGISTER_BYTES)));
    const Vec<Real> rounded = x * Real(1.44269504088896340736) + Constants::magic;
    const Vec<Real> n = rounded - Constants::magic;
    const Vec<Real> r = (x - n * Constants::high) - n * Constants::low;
    Real factors[Constants::terms + 1];
    factors[0] = 1;
    for (int i = 1; i <= Constants::terms; ++i) factors[i] = factors[i - 1] / Real(i);
    Vec<Real> sum = repeat(factors[Constants::terms]);
    for (int i = Constants::terms - 1; i >= 0; --i) sum = sum * r + factors[i];
    const Bits bits = reinterpret_cast<Bits>(sum) + (reinterpret_cast<Bits>(rounded) << Constants::shift);
    return x < Constants::lowest ? Vec<Real>{} : reinterpret_cast<Vec<Real>>(bits);
}

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
