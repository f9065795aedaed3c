// exp(x) of whole registers, for x that is not above 0.
#pragma once

#include "vectors.hpp"

namespace odeco::ODECO_ISA {

// Constants of exp(x) = 2^n exp(r): below `lowest` it is 0, `magic` rounds to an integer n that stays in the
// low bits. Bits are unsigned: they wrap where the result is 0 anyway.
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

}  // namespace odeco::ODECO_ISA
