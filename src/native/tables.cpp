// EM for mixtures of columns of any families, from many starts at once, in one call: `odeco.refinement.product_mixture`.
//
// Starts are stacked: S mixtures of k components are S k rows of one table of parameters (`odeco.families.tables`).
#include <float.h>
#include <math.h>

#include "kernels.hpp"
#include "logarithm.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr double FLOOR = 1e-13, VARIANCE_FLOOR = 1e-6;  // `odeco.families.tables`
constexpr double LEAST_COUNT = 1e-12;                   // `odeco.families.simplex`
constexpr double LOG_2PI = 1.8378770664093454836;
constexpr Index TOGETHER = 64;  // components whose responsibilities are in cache at a time

// Logarithms of `size` numbers, none of which is below 1e-300.
void logarithms(const double* from, Index size, double* out) {
    const RowShape<double> shape(size);
    for (Index r = 0; r < shape.count; ++r)
        store(out, r, shape.count, shape.tail, logarithm(load(from, r, shape.count, shape.tail)));
}

ODECO_INLINE double clipped(double value, double low, double high) { return smaller(larger(value, low), high); }

// The columns of one component.
struct Columns {
    const TableColumns& at;
    Index counts, numbers, squares, masks;  // where each kind begins

    explicit Columns(const TableColumns& columns)
        : at(columns), counts(at.n_bernoulli + at.blocks[at.blocks.size - 1]), numbers(counts + at.n_poisson),
          squares(numbers + at.n_gaussian), masks(squares + at.n_gaussian) {}

    Index n_parameters() const { return masks; }

    // Coefficients (P,), returning the constant, of parameters (Q,) and their logarithms; 0 where nothing is written.
    double natural(const double* given, const double* logs, const double* against, double* out) const {
        double constant = 0;
        const std::int32_t* mask = at.mask_of.data;
        auto place = [&](double value) { (*mask < 0 ? constant : out[masks + *mask]) += value, ++mask; };
        for (Index q = 0; q < at.n_bernoulli; ++q) {
            out[q] = logs[q] - against[q];
            place(against[q]);
        }
        for (Index q = at.n_bernoulli; q < numbers; ++q) out[q] = logs[q];
        for (Index q = counts; q < numbers; ++q) place(-given[q]);
        for (Index g = 0; g < at.n_gaussian; ++g) {
            const double mean = given[numbers + g], variance = given[squares + g];
            out[numbers + g] = mean / variance;
            out[squares + g] = -0.5 / variance;
            place(-0.5 * (LOG_2PI + logs[squares + g] + mean * out[numbers + g]));
        }
        return constant;
    }

    // Parameters (Q,) of sums of statistics (P,) and a total, and of `prior` observations that have the mean of all.
    void estimate(const double* sums, double total, const double* overall, double prior, double* out) const {
        const std::int32_t* mask = at.mask_of.data;
        auto seen = [&] {
            const Index q = masks + *mask;
            const double there = *mask++ < 0 ? total + prior : sums[q] + prior * overall[q];
            return larger(there, DBL_MIN);
        };
        for (Index q = 0; q < masks; ++q) out[q] = sums[q] + prior * overall[q];
        for (Index q = 0; q < at.n_bernoulli; ++q) out[q] /= seen();
        for (Index q = counts; q < numbers; ++q) out[q] /= seen();
        for (Index g = 0; g < at.n_gaussian; ++g) {
            const double there = seen(), mean = out[numbers + g] / there;
            out[numbers + g] = mean;
            out[squares + g] = out[squares + g] / there - mean * mean;
        }
        project(out);
    }

    // Back into their domain.
    void project(double* out) const {
        for (Index q = 0; q < at.n_bernoulli; ++q) out[q] = clipped(out[q], FLOOR, 1 - FLOOR);
        for (Index q = counts; q < numbers; ++q) out[q] = larger(out[q], FLOOR);
        for (Index q = squares; q < masks; ++q) out[q] = larger(out[q], VARIANCE_FLOOR);
        for (Index b = 0; b + 1 < at.blocks.size; ++b) {
            double *low = out + at.n_bernoulli + at.blocks[b], *high = out + at.n_bernoulli + at.blocks[b + 1], sum = 0;
            for (double* p = low; p < high; ++p) sum += *p = larger(*p, FLOOR);
            for (double* p = low; p < high; ++p) *p /= sum;
        }
    }

    // Parameters that a jump from `first` has reached must not be 0 or below, and probabilities not 1 or above.
    void hold_back(const double* first, double* out) const {
        for (Index q = 0; q < numbers; ++q) out[q] = larger(out[q], 0.1 * first[q]);
        for (Index q = squares; q < masks; ++q) out[q] = larger(out[q], 0.1 * first[q]);
        for (Index q = 0; q < at.n_bernoulli; ++q) out[q] = smaller(out[q], 1 - 0.1 * (1 - first[q]));
        project(out);
    }
};

// S mixtures: each its weights (k,) and then its parameters (k, Q).
struct Mixtures {
    const TableData& data;
    const Columns columns;
    const Index S, k, Q, P, each;
    Scratch<double> coefficients, offsets, logs, against, complements, sums, totals, highest, norms, likelihoods;

    Mixtures(const TableData& data_, const TableColumns& at, Index S_, Index k_)
        : data(data_), columns(at), S(S_), k(k_), Q(columns.n_parameters()), P(data.features.n), each(k * (1 + Q)),
          coefficients(S * k * P), offsets(S * k), logs(each), against(each), complements(each), sums(S * k * P),
          totals(S * k), highest(data.features.width * together()), norms(data.features.width * together()),
          likelihoods(S) {}

    Index together() const { return larger<Index>(TOGETHER / k, 1); }

    // Coefficients and offsets of all components, and the log density of the pseudo-observations of each mixture.
    void prepare(const double* state, double* priors) {
        for (Index i = 0; i < S * k * P; ++i) coefficients[i] = 0;
        for (Index s = 0; s < S; ++s, state += each) {
            for (Index i = 0; i < each; ++i) {
                logs[i] = larger(state[i], 1e-300);  // means may be negative: their logarithms are not used
                complements[i] = larger(1 - state[i], 1e-300);
            }
            logarithms(logs, each, logs);
            if (columns.at.n_bernoulli > 0) logarithms(complements, each, against);
            priors[s] = 0;
            for (Index j = 0; j < k; ++j) {
                const Index from = k + j * Q;
                double* out = coefficients + (s * k + j) * P;
                double term = columns.natural(state + from, logs + from, against + from, out) + logs[j];
                offsets[s * k + j] = term;
                for (Index p = 0; p < P; ++p) term += out[p] * data.overall[p];
                priors[s] += term;
            }
            priors[s] *= data.prior;
        }
    }

    // The E step; the log-likelihoods of all mixtures.
    void expect() {
        const Index n = data.features.width;
        for (Index i = 0; i < S * k * P; ++i) sums[i] = 0;
        for (Index i = 0; i < S * k; ++i) totals[i] = 0;
        for (Index s = 0; s < S; s += together()) {
            const Index some = smaller(together(), S - s), at = s * k;
            const LinearMixtures<double> mixtures{{coefficients + at * P, some * k, P}, offsets + at, some};
            posteriors64.posterior_sums(data.features, {0, n}, data.weights, mixtures,
                                        {sums + at * P, totals + at, highest, norms});
            for (Index q = 0; q < some; ++q) likelihoods[s + q] = log_likelihood(highest + q * n, norms + q * n);
        }
    }

    double log_likelihood(const double* top, const double* norm) const {
        const RowShape<double> shape(data.features.width);
        Vec<double> sum{};
        for (Index r = 0; r < shape.count; ++r) {
            Vec<double> whole = load(norm, r, shape.count, shape.tail);
            if (r + 1 == shape.count)  // beyond the last row is 1, whose logarithm is 0
                for (int s = shape.tail.count; s < WIDTH<double>; ++s) whole[s] = 1;
            const Vec<double> value = load(top, r, shape.count, shape.tail) + logarithm(whole);
            sum += data.weights.size > 0 ? value * load(data.weights.data, r, shape.count, shape.tail) : value;
        }
        return total<double>(sum);
    }

    // One EM step of all mixtures; the log posterior per sample of each before it.
    void step(const double* state, double* image, double* values) {
        evaluate(state, values, nullptr);
        for (Index s = 0; s < S; ++s, image += each) {
            double sum = 0;
            for (Index j = 0; j < k; ++j) sum += totals[s * k + j] + data.prior;
            for (Index j = 0; j < k; ++j) {
                const Index at = s * k + j;
                image[j] = sum > LEAST_COUNT ? (totals[at] + data.prior) / sum : 0;
                columns.estimate(sums + at * P, totals[at], data.overall, data.prior, image + k + j * Q);
            }
        }
    }

    void evaluate(const double* state, double* values, double* found) {
        prepare(state, values);
        expect();
        for (Index s = 0; s < S; ++s) {
            values[s] = (likelihoods[s] + values[s]) / data.total;
            if (found) found[s] = likelihoods[s] / data.total;
        }
    }

    // theta_0 - 2 a r + a^2 v with r, v the first and second differences and a = -|r| / |v|, for each mixture.
    void extrapolate(const double* zero, const double* one, const double* two, double* out) const {
        for (Index s = 0; s < S; ++s, zero += each, one += each, two += each, out += each) {
            double steps = 0, bends = 0;
            for (Index i = 0; i < each; ++i) {
                const double step = one[i] - zero[i], bend = two[i] - 2 * one[i] + zero[i];
                steps += step * step;
                bends += bend * bend;
            }
            const double length = clipped(bends > 0 ? sqrt(steps) / sqrt(bends) : 1, 1, 64);
            for (Index i = 0; i < each; ++i)
                out[i] = zero[i] + 2 * length * (one[i] - zero[i]) + length * length * (two[i] - 2 * one[i] + zero[i]);
            double sum = 0;
            for (Index j = 0; j < k; ++j) sum += out[j] = larger(out[j], 0.1 * zero[j]);
            for (Index j = 0; j < k; ++j) {
                out[j] /= sum;
                columns.hold_back(zero + k + j * Q, out + k + j * Q);
            }
        }
    }
};

ODECO_INLINE void copy(const double* from, Index size, double* to) {
    for (Index i = 0; i < size; ++i) to[i] = from[i];
}

double largest_of(const double* values, Index n) {
    double most = values[0];
    for (Index i = 1; i < n; ++i)
        if (!(values[i] <= most)) most = values[i];  // NaN stays
    return most;
}

// What the loop has seen at so many steps.
struct Records {
    Span<double> values;
    std::int64_t* counts;
    Index n = 0;
    void add(Index count, double value) {
        counts[n] = count;
        values[n++] = value;
    }
};

TableClimbed climb_tables(const TableData& data, const TableColumns& at, Index S, Index k, const TableRule& rule,
                          double* given, double* values, double* likelihoods, Span<double> seen, std::int64_t* counts) {
    Mixtures mixtures(data, at, S, k);
    const Index size = S * mixtures.each, each = mixtures.each;
    Scratch<double> first(size), second(size), third(size), jumped(size), middle(S), reached(S);
    double* state = given;  // where `current` came from
    double *current = first, *next = second, *after = third;
    Records records{seen, counts};
    Index taken = 1;
    bool converged = false;
    mixtures.step(state, current, values);
    while (true) {
        records.add(taken, largest_of(values, S));
        if (taken >= rule.max_iter) break;
        mixtures.step(current, next, middle);
        ++taken;
        bool small = true;
        for (Index s = 0; s < S; ++s) small &= middle[s] - values[s] <= rule.tol;
        if (!rule.accelerate || taken >= rule.max_iter) {
            copy(current, size, state);
            copy(next, size, current);
            copy(middle, S, values);
            if (small) {
                converged = true;
                break;
            }
            continue;
        }
        mixtures.extrapolate(state, current, next, jumped);
        mixtures.step(jumped, after, reached);
        ++taken;
        for (Index s = 0; s < S; ++s) {
            const bool fine = reached[s] >= middle[s];  // a jump that is kept is worth its step
            copy((fine ? static_cast<const double*>(jumped) : current) + s * each, each, state + s * each);
            copy((fine ? after : next) + s * each, each, current + s * each);
            const double value = fine ? reached[s] : middle[s];
            small &= value - values[s] <= 2 * rule.tol;
            values[s] = value;
        }
        if (small) {
            converged = true;
            break;
        }
    }
    copy(current, size, given);
    mixtures.evaluate(given, values, likelihoods);
    records.add(taken, largest_of(values, S));
    return {records.n, converged};
}

}  // namespace

const TableKernels tables{climb_tables};

}  // namespace odeco::ODECO_ISA
