// log(x) of whole registers, for x that is a positive normal number.
#pragma once

#include "vectors.hpp"

namespace odeco::ODECO_ISA {

// x = 2^n m with m between the roots of 1/2 and 2, and log m = 2 artanh(s), s = (m - 1) / (m + 1): |s| < 0.172, and the
// term of the series after the last one is below half a unit in the last place.
ODECO_INLINE Vec<double> logarithm(Vec<double> x) {
    typedef std::int64_t Bits __attribute__((vector_size(REGISTER_BYTES)));
    constexpr std::int64_t ROOT_HALF = 0x3fe6a09e667f3bcd;  // of 1/2
    const Bits bits = reinterpret_cast<Bits>(x), n = (bits - ROOT_HALF) >> 52;
    const Vec<double> m = reinterpret_cast<Vec<double>>(bits - (n << 52));
    const Vec<double> exponent = __builtin_convertvector(n, Vec<double>);
    const Vec<double> s = (m - 1) / (m + 1), square = s * s;
    Vec<double> sum = repeat(1.0 / 21);
    for (int i = 19; i >= 3; i -= 2) sum = sum * square + 1.0 / i;
    // The logarithm of 2 in two parts, the first of which is exact times any exponent.
    return exponent * 6.93147180369123816490e-01 + (2 * s + (2 * s * square * sum + exponent * 1.90821492927058770002e-10));
}

}  // namespace odeco::ODECO_ISA
