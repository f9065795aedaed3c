// Scaled forward and backward recursions of hidden Markov models, eight stretches of the data in lockstep.
//
// The normalization of a step is divided out in the next one, so that no step waits for the division.
#include <math.h>

#include "lanes.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int CHUNK = 32;  // steps whose transitions are summed at a time: they are still in the first-level cache

ODECO_INLINE double weight_of(Span<const double> weights, Index t) {
    return weights.size > 0 ? weights[smaller(larger<Index>(t, 0), weights.size - 1)] : 1.0;
}

// Products of normalizations, whose logarithms are taken before they leave the range of numbers.
struct LogProducts {
    Lanes products = everywhere(1.0);
    double* log_likelihoods;

    ODECO_INLINE void restart() { products = everywhere(1.0); }

    // Adds the logarithms, with the weights of the steps at `position`; the products begin anew.
    void flush(Span<const double> weights, Index position, Index length) {
        for (int s = 0; s < LANES; ++s) {
            const double weight = weight_of(weights, position + s * length);
            // What does not count may be impossible: 0 times -inf is no number.
            if (products[s] != 1.0 && weight > 0) log_likelihoods[s] += log(products[s]) * weight;
        }
        restart();
    }
};

void add_scales(const Steps& steps, Span<const double> scales, Index position, Index length, double* log_likelihoods) {
    for (int s = 0; s < LANES; ++s) {
        const Index t = position + s * length;
        if (t < steps.index.size) log_likelihoods[s] += scales[steps.index[t]] * weight_of(steps.weights, t);
    }
}

// The message of a step before it is normalized, and what it is to be multiplied by.
struct Filter {
    Rows<const double> transposed;
    const double* start;
    Scratch<double> likelihoods, predicted, next;
    Lanes inverse = everywhere(1.0);
    double *now, *other;

    explicit Filter(Rows<const double> transposed_, const double* start_)
        : transposed(transposed_), start(start_), likelihoods(transposed.n * LANES), predicted(transposed.n * LANES),
          next(transposed.n * LANES), now(predicted), other(next) {}

    // One step; returns the normalization in each lane.
    ODECO_INLINE Lanes advance(const LoadedStep& step) {
        Lanes even = everywhere(0.0), odd = everywhere(0.0);
        multiply_lanes(transposed, now, [&](Index j, Lanes sum) __attribute__((always_inline)) {
            Lanes value = sum * (load_lanes(likelihoods + j * LANES) * inverse);
            store_lanes(other + j * LANES, value);
            (j % 2 ? odd : even) = (j % 2 ? odd : even) + value;
        });
        Lanes totals = even + odd;
        if (step.n_begin) totals = begin_sequences(step, totals);
        double* before = now;
        now = other;
        other = before;
        inverse = everywhere(1.0) / totals;
        return totals;
    }

    // Where a sequence begins, the start takes the place of what came before.
    Lanes begin_sequences(const LoadedStep& step, Lanes totals) {
        const Index k = transposed.width;
        for (int s = 0; s < LANES; ++s) {
            if (!step.begins[s]) continue;
            totals[s] = 0;
            for (Index j = 0; j < k; ++j) {
                other[j * LANES + s] = start[j] * likelihoods[j * LANES + s];
                totals[s] += other[j * LANES + s];
            }
        }
        return totals;
    }

    // Where no state can have produced the observation it is as if nothing were known.
    void forget_impossible(Lanes totals) {
        for (int s = 0; s < LANES; ++s)
            if (!(totals[s] > 0)) {
                inverse[s] = 1.0;
                fill_lane(now, s, transposed.width, 1.0 / double(transposed.width));
            }
    }

    ODECO_INLINE void write(double* out) const {
        for (Index j = 0; j < transposed.n; ++j) store_lanes(out + j * LANES, load_lanes(now + j * LANES) * inverse);
    }
    ODECO_INLINE void read(const double* in) {
        for (Index j = 0; j < transposed.n; ++j) store_lanes(now + j * LANES, load_lanes(in + j * LANES));
        inverse = everywhere(1.0);
    }
};

void forward(const Steps& steps, Span<const double> scales, Rows<const double> transposed, const double* start,
             Stretches stretches, const ForwardSums& out) {
    const auto [begin, length, burn] = stretches;
    const bool keep = out.alphas.n > 1;
    Filter filter(transposed, start);
    LogProducts logs{.log_likelihoods = out.log_likelihoods};
    for (int s = 0; s < LANES; ++s) out.log_likelihoods[s] = 0;
    filter.read(out.message);
    for (Index t = -burn; t < length; ++t) {
        if (t == 0) {
            filter.write(out.alphas[0]);
            logs.restart();
        }
        const LoadedStep step = load_step(steps, begin + t, length, filter.likelihoods, 1.0);
        if (step.n_begin && t >= 0 && steps.weights.size > 0) logs.flush(steps.weights, begin + t - 1, length);
        const Lanes totals = filter.advance(step);
        logs.products = logs.products * totals;
        if (!all_inside(logs.products, 1e-150, 1e150)) {
            if (t >= 0) logs.flush(steps.weights, begin + t, length);
            logs.restart();
            filter.forget_impossible(totals);
        }
        if (t >= 0 && scales.size > 0) add_scales(steps, scales, begin + t, length, out.log_likelihoods);
        if (t >= 0 && keep) {
            filter.write(out.alphas[t + 1]);
            store_lanes(out.norms + t * LANES, filter.inverse);
        }
    }
    logs.flush(steps.weights, begin + length - 1, length);
    filter.write(out.message);
}

// Lanes that sum to 1; uniform where a sequence begins at the next step.
void normalize(double* message, const bool* begins, Index kp, Index k) {
    Lanes totals = everywhere(0.0);
    for (Index j = 0; j < kp; ++j) totals = totals + load_lanes(message + j * LANES);
    Lanes inverse = everywhere(1.0) / totals;
    for (int s = 0; s < LANES; ++s)
        if (begins[s] || !(totals[s] > 0)) {
            inverse[s] = 1.0 / double(k);
            fill_lane(message, s, k, 1.0);
        }
    for (Index j = 0; j < kp; ++j) store_lanes(message + j * LANES, load_lanes(message + j * LANES) * inverse);
}

// pair_sums[i, j, :] += sum_t alphas[t, i, :] counted[t, j, :] over n_steps.
void add_pairs(const double* alphas, const double* counted, Index n_steps, Index kp, double* pair_sums) {
    constexpr int SIDE = PARTS == 1 ? 4 : 2;  // sums of a block: 16 registers of 32, or 8 of 16
    auto block = [&](auto rows, auto columns, Index i, Index j) __attribute__((always_inline)) {
        Lanes sums[rows.value][columns.value];
        for (int p = 0; p < rows.value; ++p)
            for (int q = 0; q < columns.value; ++q) sums[p][q] = load_lanes(pair_sums + ((i + p) * kp + j + q) * LANES);
        for (Index t = 0; t < n_steps; ++t) {
            Lanes left[rows.value];
            for (int p = 0; p < rows.value; ++p) left[p] = load_lanes(alphas + (t * kp + i + p) * LANES);
            for (int q = 0; q < columns.value; ++q) {
                const Lanes right = load_lanes(counted + (t * kp + j + q) * LANES);
                for (int p = 0; p < rows.value; ++p) sums[p][q] = sums[p][q] + left[p] * right;
            }
        }
        for (int p = 0; p < rows.value; ++p)
            for (int q = 0; q < columns.value; ++q) store_lanes(pair_sums + ((i + p) * kp + j + q) * LANES, sums[p][q]);
    };
    auto strip = [&](auto rows, Index i) __attribute__((always_inline)) {
        Index j = 0;
        for (; j + SIDE <= kp; j += SIDE) block(rows, Constant<SIDE>{}, i, j);
        if (j < kp) block(rows, Constant<2>{}, i, j);
    };
    Index i = 0;
    for (; i + SIDE <= kp; i += SIDE) strip(Constant<SIDE>{}, i);
    if (i < kp) strip(Constant<2>{}, i);
}

// The message of the last step, found `burn` steps later and scaled to fit the filtered probabilities.
struct Backward {
    const Steps& steps;
    Rows<const double> transmat;
    Stretches at;
    const BackwardSums& out;
    Index kp, k;
    Scratch<double> likelihoods, posterior, counted;

    Backward(const Steps& steps_, Rows<const double> transmat_, Stretches at_, const BackwardSums& out_)
        : steps(steps_), transmat(transmat_), at(at_), out(out_), kp(transmat.n), k(transmat.width),
          likelihoods(kp * LANES), posterior(kp * LANES), counted(CHUNK * kp * LANES) {}

    ODECO_INLINE void step_back(const double* weighted) {
        multiply_lanes(transmat, weighted, [&](Index i, Lanes sum) __attribute__((always_inline)) {
            store_lanes(out.message + i * LANES, sum);
        });
    }

    void burn_in() {
        for (Index t = at.length + at.burn - 1; t >= at.length; --t) {
            const LoadedStep step = load_step(steps, at.begin + t, at.length, likelihoods, 1.0);
            for (Index j = 0; j < kp; ++j)
                store_lanes(posterior + j * LANES,
                            load_lanes(likelihoods + j * LANES) * load_lanes(out.message + j * LANES));
            step_back(posterior);
            normalize(out.message, step.begins, kp, k);
        }
        for (Index i = 0; i < kp * LANES; ++i) out.used[i] = out.message[i];
        const double* last = out.alphas + at.length * kp * LANES;
        Lanes totals = everywhere(0.0);
        for (Index j = 0; j < kp; ++j)
            totals = totals + load_lanes(out.message + j * LANES) * load_lanes(last + j * LANES);
        for (Index j = 0; j < kp; ++j)
            store_lanes(out.message + j * LANES, load_lanes(out.message + j * LANES) / totals);
    }

    // Adds the posteriors of one step of each lane, with its weight.
    void collect(Index position) {
        if (steps.weights.size > 0)
            for (int s = 0; s < LANES; ++s) {
                const double weight = weight_of(steps.weights, position + s * at.length);
                for (Index j = 0; j < k; ++j) posterior[j * LANES + s] *= weight;
            }
        if (position + (LANES - 1) * at.length < steps.index.size) {
            Index chosen[LANES];
            for (int s = 0; s < LANES; ++s) chosen[s] = out.target[position + s * at.length];
            scatter_lanes(posterior, chosen, out.row_sums);
        } else {
            for (int s = 0; s < LANES && position + s * at.length < steps.index.size; ++s)
                for (Index j = 0; j < k; ++j)
                    out.row_sums[out.target[position + s * at.length]][j] += posterior[j * LANES + s];
        }
    }

    // First steps: their posteriors are those of the start, and nothing is handed on to the step before.
    void end_sequences(const LoadedStep& step, Index position, double* slot) {
        for (int s = 0; s < LANES; ++s) {
            const bool begins = step.begins[s];
            if (begins && position + s * at.length < steps.index.size)
                for (Index j = 0; j < k; ++j) out.start_sums[j] += posterior[j * LANES + s];
            if (begins) fill_lane(out.message, s, k, 1.0);
            const double weight = begins ? 0.0 : weight_of(steps.weights, position + s * at.length);
            for (Index j = 0; j < kp; ++j) slot[j * LANES + s] *= weight;
        }
    }

    void run() {
        burn_in();
        int waiting = 0;  // steps in `counted`, the latest of them last
        for (Index t = at.length - 1; t >= 0; --t) {
            const LoadedStep step = load_step(steps, at.begin + t, at.length, likelihoods, 1.0);
            const double* alpha = out.alphas + (t + 1) * kp * LANES;
            double* slot = counted + (CHUNK - 1 - waiting) * kp * LANES;
            const Lanes norm = load_lanes(out.norms + t * LANES);
            for (Index j = 0; j < kp; ++j) {
                const Lanes message = load_lanes(out.message + j * LANES);
                store_lanes(posterior + j * LANES, load_lanes(alpha + j * LANES) * message);
                store_lanes(slot + j * LANES, load_lanes(likelihoods + j * LANES) * norm * message);
            }
            step_back(slot);
            collect(at.begin + t);
            if (step.n_begin || steps.weights.size > 0) end_sequences(step, at.begin + t, slot);
            if (++waiting == CHUNK || t == 0) {
                add_pairs(out.alphas + t * kp * LANES, slot, waiting, kp, out.pair_sums);
                waiting = 0;
            }
        }
        const bool none[LANES]{};
        normalize(out.message, none, kp, k);
    }
};

void backward(const Steps& steps, Rows<const double> transmat, Stretches stretches, const BackwardSums& out) {
    Backward(steps, transmat, stretches, out).run();
}

// out = weights' rows, both of k numbers; `weights` and `out` are padded. Two chains of sums do not wait for one another.
ODECO_INLINE void combine(Rows<const double> rows, const double* weights, RowShape<double> shape, double* out) {
    for (Index r = 0; r < shape.count; ++r) {
        Vec<double> even{}, odd{};
        Index i = 0;
        for (; i + 1 < rows.n; i += 2) {
            even += weights[i] * load(rows[i], r, shape.count, shape.tail);
            odd += weights[i + 1] * load(rows[i + 1], r, shape.count, shape.tail);
        }
        if (i < rows.n) even += weights[i] * load(rows[i], r, shape.count, shape.tail);
        store(out + r * WIDTH<double>, even + odd);
    }
}

// message = next / sum(next) (k,), uniform where it has no sum or is to be forgotten.
ODECO_INLINE void normalize_one(const double* next, RowShape<double> shape, Index k, bool forget, double* message) {
    Vec<double> parts{};
    for (Index r = 0; r < shape.count; ++r) parts += load(next + r * WIDTH<double>);
    const double sum = total<double>(parts), inverse = 1 / sum;
    if (sum > 0 && !forget)
        for (Index j = 0; j < k; ++j) message[j] = next[j] * inverse;
    else
        for (Index j = 0; j < k; ++j) message[j] = 1.0 / double(k);
}

void advance(const Steps& steps, Rows<const double> transmat, const double* start, double* message) {
    const Index k = transmat.width;
    RowShape<double> shape(k);
    Scratch<double> next(shape.padded());
    for (Index t = 0; t < steps.index.size; ++t) {
        const double* row = steps.rows[steps.index[t]];
        combine(transmat, message, shape, next);
        if (steps.first[t])
            for (Index j = 0; j < k; ++j) next[j] = start[j];
        for (Index r = 0; r < shape.count; ++r)
            store(next + r * WIDTH<double>, load(next + r * WIDTH<double>) * load(row, r, shape.count, shape.tail));
        normalize_one(next, shape, k, false, message);
    }
}

void retreat(const Steps& steps, Rows<const double> transmat, double* message) {
    const Index k = transmat.width;
    RowShape<double> shape(k);
    Scratch<double> next(shape.padded()), weighted(shape.padded()), columns(k * k);
    for (Index i = 0; i < k; ++i)
        for (Index j = 0; j < k; ++j) columns[j * k + i] = transmat[i][j];
    for (Index t = steps.index.size - 1; t >= 0; --t) {
        const double* row = steps.rows[steps.index[t]];
        for (Index j = 0; j < k; ++j) weighted[j] = row[j] * message[j];
        combine({columns, k, k}, weighted, shape, next);
        normalize_one(next, shape, k, steps.first[t], message);
    }
}

}  // namespace

const ChainKernels chains{forward, backward, advance, retreat};

}  // namespace odeco::ODECO_ISA
