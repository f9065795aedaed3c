// Steps of EM for one document, for every number of registers that a row of topics may take.
#include "shares.hpp"

#include <math.h>

namespace odeco::ODECO_ISA {

// exp(digamma(x)) to 1e-10 relative: recurrence up to 6, then the asymptotic series.
double exp_digamma(double x) {
    double shift = 0;
    for (; x < 6; x += 1) shift += 1 / x;
    double f = 1 / (x * x);
    return exp(log(x) - 0.5 / x - f * (1.0 / 12 - f * (1.0 / 120 - f * (1.0 / 252 - f / 240))) - shift);
}

template <int N, class Real>
void em_steps(Words<N, Real> words, const Real* alpha, Index d, Index n_iter, bool variational,
              Real* __restrict strengths, Real* __restrict weights, Real* __restrict sums) {
    const Index k = words.topics.width;
    for (Index step = 0; step < n_iter; ++step) {
        begin_em_step(strengths, alpha, k, variational, weights, sums);
        add_shares(words, d, weights, sums);
        for (Index i = 0; i < k; ++i) strengths[i] = sums[i] * weights[i];
    }
}

#define ODECO_STEPS(N, Real) \
    template void em_steps(Words<N, Real>, const Real*, Index, Index, bool, Real*, Real*, Real*);
#define ODECO_BOTH(N) ODECO_STEPS(N, float) ODECO_STEPS(N, double)
ODECO_EACH_REGISTERS(ODECO_BOTH)

}  // namespace odeco::ODECO_ISA
