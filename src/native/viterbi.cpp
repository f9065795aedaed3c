// Viterbi in the stretches of `forward_backward.cpp`, eight in lockstep, and step by step where stretches do not agree.
#include "lanes.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr double IMPOSSIBLE = -__builtin_inf();

// The first of the largest scores.
ODECO_INLINE Index best_of(const double* scores, Index k) {
    Index best = 0;
    for (Index j = 1; j < k; ++j)
        if (scores[j] > scores[best]) best = j;
    return best;
}

// The best score of each state over the states before it, and which of them it comes from: the first of equals.
ODECO_INLINE void best_origins(Rows<const double> log_transmat, const double* scores, RowShape<double> shape, double* best,
                               std::int64_t* origin) {
    for (Index r = 0; r < shape.count; ++r) {
        Vec<double> top = repeat(IMPOSSIBLE);
        Vec<std::int64_t> from{};
        for (Index i = 0; i < log_transmat.width; ++i) {
            const Vec<double> candidate = scores[i] + load(log_transmat[i], r, shape.count, shape.tail);
            from = candidate > top ? repeat(std::int64_t(i)) : from;
            top = candidate > top ? candidate : top;
        }
        store(best + r * WIDTH<double>, top);
        store(origin + r * WIDTH<double>, from);
    }
}

template <class State>
double best_paths(const Steps& steps, Rows<const double> log_transmat, const double* log_start, double* scores,
                  Rows<State> origins) {
    const Index k = log_transmat.width;
    RowShape<double> shape(k);
    Scratch<double> best(shape.padded());
    Scratch<std::int64_t> origin(shape.padded());
    double finished = 0;
    for (Index t = 0; t < steps.index.size; ++t) {
        if (steps.first[t]) {  // the sequence before ends in its best state
            const Index last = best_of(scores, k);
            finished += scores[last];
            for (Index j = 0; j < k; ++j) best[j] = log_start[j], origin[j] = last;
        } else {
            best_origins(log_transmat, scores, shape, best, origin);
        }
        const double* row = steps.rows[steps.index[t]];
        for (Index j = 0; j < k; ++j) scores[j] = best[j] + row[j];
        if (origins.n > 0)
            for (Index j = 0; j < k; ++j) origins[t][j] = State(origin[j]);
    }
    return finished;
}

// Scores as the first step finds them: less the largest of each lane, so that only differences are kept.
void keep_first(double* scores, double* kept, Index k) {
    for (int s = 0; s < LANES; ++s) {
        double top = IMPOSSIBLE;
        for (Index j = 0; j < k; ++j) top = larger(top, scores[j * LANES + s]);
        for (Index j = 0; j < k; ++j) {
            double& score = scores[j * LANES + s];
            kept[j * LANES + s] = score = top > IMPOSSIBLE ? score - top : 0.0;
        }
    }
}

void best_scores(const Steps& steps, Rows<const double> log_transposed, const double* log_start, Stretches at,
                 double* scores, Rows<double> kept) {
    const Index kp = log_transposed.n, k = log_transposed.width;
    Scratch<double> rows(kp * LANES), next(kp * LANES);
    for (Index t = -at.burn; t < at.length; ++t) {
        if (t == 0) keep_first(scores, kept[0], k);
        const LoadedStep step = load_step(steps, at.begin + t, at.length, rows, 1.0);
        best_lanes(log_transposed, scores, [&](Index j, Lanes best) __attribute__((always_inline)) {
            store_lanes(next + j * LANES, best);
        });
        if (step.n_begin)
            for (int s = 0; s < LANES; ++s)
                if (step.begins[s]) fill_lane(next, s, k, log_start);
        double* out = t >= 0 ? kept[t + 1] : nullptr;
        for (Index j = 0; j < k; ++j) {
            const Lanes sum = load_lanes(next + j * LANES) + load_lanes(rows + j * LANES);
            store_lanes(scores + j * LANES, sum);
            if (out) store_lanes(out + j * LANES, sum);
        }
    }
}

Traced trace_lanes(const Steps& steps, Rows<const double> log_transposed, const double* log_start, Stretches at,
                   Rows<const double> kept, Index state, Span<std::int64_t> path) {
    const Index k = log_transposed.width;
    const Scratch<double> nothing(k);  // where no state follows
    double value = 0;
    for (int s = LANES - 1; s >= 0; --s)
        for (Index t = at.length - 1; t >= 0; --t) {
            const Index position = at.begin + s * at.length + t;
            if (position >= path.size) continue;
            const double *scores = kept[t + 1] + s, *onwards = state >= 0 ? log_transposed[state] : +nothing;
            double best = IMPOSSIBLE;
            Index chosen = 0;
            for (Index i = 0; i < k; ++i) {
                const double score = scores[i * LANES] + onwards[i];
                if (score > best) best = score, chosen = i;
            }
            path[position] = chosen;
            value += onwards[chosen] + steps.rows[steps.index[position]][chosen];
            state = chosen;
            if (steps.first[position]) {
                value += log_start[chosen];
                state = -1;
            }
        }
    return {state, value};
}

}  // namespace

const ViterbiKernels viterbi{best_paths<std::uint8_t>, best_paths<std::int32_t>, best_scores, trace_lanes};

}  // namespace odeco::ODECO_ISA
