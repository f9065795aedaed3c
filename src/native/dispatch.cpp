// Chooses an instruction set once, when the module is loaded: the best one that the machine has, or a lower one that the
// environment variable ODECO_INSTRUCTION_SET names (tests compare them, and a reader of results may want the same bits on
// two machines).
#include "dispatch.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace odeco {

ODECO_TABLES(baseline)
#ifdef ODECO_X86_LEVELS
ODECO_TABLES(v3)
ODECO_TABLES(v4)
#endif

namespace {

#ifdef ODECO_ONE_VARIANT
const char* const NAMES[] = {"native"};  // of the machine that compiled it
#else
const char* const NAMES[] = {"baseline", "x86-64-v3", "x86-64-v4"};
#endif

int best_level() {
#ifdef ODECO_X86_LEVELS
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return v4 ? 2 : v3 ? 1 : 0;
#else
    return 0;
#endif
}

int chosen_level() {
    const int best = best_level();
    const char* wanted = std::getenv("ODECO_INSTRUCTION_SET");
    for (int level = 0; wanted && level < best; ++level)
        if (std::strcmp(wanted, NAMES[level]) == 0) return level;
    return best;
}

const int LEVEL = chosen_level();

}  // namespace

#ifdef ODECO_X86_LEVELS
#define ODECO_CHOOSE(table) (LEVEL == 2 ? v4::table : LEVEL == 1 ? v3::table : baseline::table)
// Rows of up to 24 single numbers fill registers of 8 better than those of 16, and with more rows do not stay in them:
// of 20 topics a step of CVB0 takes 10.2 ns a word with them, and 11.6 with 16.
#define ODECO_CHOOSE_FOR(width, table) (LEVEL == 2 && (width) <= 24 ? v3::table : ODECO_CHOOSE(table))
#else
#define ODECO_CHOOSE(table) baseline::table
#define ODECO_CHOOSE_FOR(width, table) baseline::table
#endif

template <> const SparseKernels<float>& sparse() { return ODECO_CHOOSE(sparse32); }
template <> const SparseKernels<double>& sparse() { return ODECO_CHOOSE(sparse64); }
template <> const DocumentKernels<float>& documents() { return ODECO_CHOOSE(documents32); }
template <> const DocumentKernels<double>& documents() { return ODECO_CHOOSE(documents64); }
template <> const Cvb0Kernels<float>& cvb0(Index width) { return ODECO_CHOOSE_FOR(width, cvb32); }
template <> const Cvb0Kernels<double>& cvb0(Index width) { return ODECO_CHOOSE_FOR(2 * width, cvb64); }
template <> const MixtureKernels<float>& mixture() { return ODECO_CHOOSE(mixture32); }
template <> const MixtureKernels<double>& mixture() { return ODECO_CHOOSE(mixture64); }
template <> const PosteriorKernels<float>& posteriors() { return ODECO_CHOOSE(posteriors32); }
template <> const PosteriorKernels<double>& posteriors() { return ODECO_CHOOSE(posteriors64); }
template <> const RowPosteriorKernels<float>& row_posteriors() { return ODECO_CHOOSE(row_posteriors32); }
template <> const RowPosteriorKernels<double>& row_posteriors() { return ODECO_CHOOSE(row_posteriors64); }
template <> const QuadraticKernels<float>& quadratic() { return ODECO_CHOOSE(quadratic32); }
template <> const QuadraticKernels<double>& quadratic() { return ODECO_CHOOSE(quadratic64); }
template <> const ViewKernels<float>& views() { return ODECO_CHOOSE(views32); }
template <> const ViewKernels<double>& views() { return ODECO_CHOOSE(views64); }
template <> const ScoreKernels<float>& scores() { return ODECO_CHOOSE(scores32); }
template <> const ScoreKernels<double>& scores() { return ODECO_CHOOSE(scores64); }
template <> const ColumnKernels<float, float>& columns() { return ODECO_CHOOSE(columns32); }
template <> const ColumnKernels<double, float>& columns() { return ODECO_CHOOSE(columns64to32); }
template <> const ColumnKernels<double, double>& columns() { return ODECO_CHOOSE(columns64); }
template <> const CubeKernels<float>& cubes() { return ODECO_CHOOSE(cubes32); }
template <> const CubeKernels<double>& cubes() { return ODECO_CHOOSE(cubes64); }
template <> const ChannelKernels<float>& channels() { return ODECO_CHOOSE(channels32); }
template <> const ChannelKernels<double>& channels() { return ODECO_CHOOSE(channels64); }
template <> const CumulantKernels<float>& cumulants() { return ODECO_CHOOSE(cumulants32); }
template <> const CumulantKernels<double>& cumulants() { return ODECO_CHOOSE(cumulants64); }
const ScoringKernels& scoring() { return ODECO_CHOOSE(scoring); }
const ChainKernels& chains() { return ODECO_CHOOSE(chains); }
const ShortChainKernels& short_chains() { return ODECO_CHOOSE(short_chains); }
const ViterbiKernels& viterbi() { return ODECO_CHOOSE(viterbi); }
const GaussianKernels& gaussian() { return ODECO_CHOOSE(gaussian); }
const FeatureKernels& step_features() { return ODECO_CHOOSE(step_features); }
const TableKernels& tables() { return ODECO_CHOOSE(tables); }
const SplineKernels& splines() { return ODECO_CHOOSE(splines); }
const FrameKernels& frames() { return ODECO_CHOOSE(frames); }
const SequenceKernels& sequences() { return ODECO_CHOOSE(sequences); }

void out_of_memory() { throw std::bad_alloc(); }

const char* instruction_set() { return NAMES[LEVEL]; }

}  // namespace odeco
