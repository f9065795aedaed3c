// Hidden Markov models on short data: exact recursions from one step to the next, and whole climbs of Baum-Welch.
//
// Where there are a few thousand steps, a pass takes microseconds and whatever is around it takes most of the time. So
// nothing is cut into stretches here, and a climb, its M steps and its acceleration come from one call.
#include <math.h>

#include "kernels.hpp"
#include "vectors.hpp"

namespace odeco::ODECO_ISA {
namespace {

// Weighted sum of the rows of a padded matrix. Two chains of sums do not wait for one another.
template <int N>
ODECO_INLINE void combine(const double* matrix, const double* weights, Index k, Index count, double* out) {
    const Index registers = N ? N : count, padded = registers * WIDTH<double>;
    for (Index r = 0; r < registers; ++r) {
        const double* column = matrix + r * WIDTH<double>;
        Vec<double> even{}, odd{};
        Index i = 0;
        for (; i + 1 < k; i += 2) {
            even += weights[i] * load(column + i * padded);
            odd += weights[i + 1] * load(column + (i + 1) * padded);
        }
        if (i < k) even += weights[i] * load(column + i * padded);
        store(out + r * WIDTH<double>, even + odd);
    }
}

// Totals of messages that are left as they are: one step more is still a normal number.
constexpr double SMALL_TOTAL = 1e-10, LARGE_TOTAL = 1e10;

ODECO_INLINE bool in_range(double whole) { return whole > SMALL_TOTAL && whole < LARGE_TOTAL; }

// Room for likelihoods, messages and sums, used from one pass to the next. Rows are padded to whole registers by zeros.
//
// Messages of both directions come out of one loop: each step waits for the one before, and two chains of them take as
// long as one. They are left as they are while they stay in the range of numbers, so that none waits for a division.
struct Recursion {
    const Steps& steps;
    const Index n, m, k, count, padded;
    Scratch<double> likelihoods, row_sums, start_sums;  // (m, padded), (m, padded), (padded,)
    Scratch<double> alphas, betas, products, shrunk, transmat, transposed, first, pairs;

    Recursion(const Steps& steps_, Index m_, Index k_)
        : steps(steps_), n(steps_.index.size), m(m_), k(k_), count(RowShape<double>(k_).count),
          padded(count * WIDTH<double>), likelihoods(m * padded), row_sums(m * padded), start_sums(padded),
          alphas(n * padded), betas(n * padded), products(n * padded), shrunk(n), transmat(k * padded), transposed(k * padded), first(padded),
          pairs(k * padded) {}

    ODECO_INLINE double weight(Index t) const { return steps.weights.size > 0 ? steps.weights[t] : 1.0; }
    ODECO_INLINE double* row(double* of, Index t) const { return of + steps.index[t] * padded; }

    // The log-likelihood; `row_sums`, `start_sums` and `transitions` (k, k) are what the M step needs.
    double run(const double* start, const double* moves, Span<const double> scales, double* transitions) {
        for (Index i = 0; i < k; ++i)
            for (Index j = 0; j < k; ++j) transmat[i * padded + j] = transposed[j * padded + i] = moves[i * k + j];
        for (Index j = 0; j < k; ++j) first[j] = start[j];
        for (Index i = 0; i < m * padded; ++i) row_sums[i] = 0;
        for (Index j = 0; j < padded; ++j) start_sums[j] = 0;
        double value = 0;
        with_registers(count, [&](auto registers) __attribute__((always_inline)) {
            for (Index t = 0; t < n; ++t) {
                value += forward<registers.value>(t);
                backward<registers.value>(n - 1 - t);
            }
            for (Index t = 0; t < n; ++t) collect<registers.value>(t);
            Index i = 0;
            for (; i + 3 < k; i += 4) add_pairs<registers.value, 4>(i);
            for (; i + 1 < k; i += 2) add_pairs<registers.value, 2>(i);
            if (i < k) add_pairs<registers.value, 1>(i);
        });
        for (Index t = 0; scales.size > 0 && t < n; ++t) value += scales[steps.index[t]] * weight(t);
        for (Index i = 0; i < k; ++i)
            for (Index j = 0; j < k; ++j) transitions[i * k + j] = pairs[i * padded + j] * moves[i * k + j];
        return value;
    }

    // The message of step t, and the part of the log-likelihood that is taken out of it.
    template <int N> ODECO_INLINE double forward(Index t) {
        const Index registers = N ? N : count;
        double* now = alphas + t * padded;
        const double *likelihood = row(likelihoods, t), *from = now;
        if (steps.first[t]) from = first;
        else combine<N>(transmat, now - padded, k, registers, now);
        Vec<double> parts{};
        for (Index r = 0; r < registers; ++r) {
            const Vec<double> value = load(from + r * WIDTH<double>) * load(likelihood + r * WIDTH<double>);
            store(now + r * WIDTH<double>, value);
            parts += value;
        }
        const double whole = total<double>(parts);
        const bool last = t + 1 == n || steps.first[t + 1];
        shrunk[t] = 1;
        return last || !in_range(whole) ? shrink(t, whole) : 0;
    }

    // A message that sums to 1; where nothing can have produced the observation, as if nothing were known.
    double shrink(Index t, double whole) {
        double* now = alphas + t * padded;
        const bool possible = whole > 0;
        for (Index j = 0; j < k; ++j) now[j] = possible ? now[j] / whole : 1.0 / double(k);
        shrunk[t] = possible ? whole : 0;
        // What does not count may be impossible: 0 times -inf is no number.
        return weight(t) > 0 ? log(whole) * weight(t) : 0;
    }

    // The message of step t, which sums to any number, and its products with likelihoods, which the step before needs.
    template <int N> ODECO_INLINE void backward(Index t) {
        const Index registers = N ? N : count;
        double *now = betas + t * padded, *with = products + t * padded;
        const double* likelihood = row(likelihoods, t);
        if (t + 1 == n || steps.first[t + 1])
            for (Index j = 0; j < k; ++j) now[j] = 1;
        else combine<N>(transposed, with + padded, k, registers, now);
        Vec<double> parts{};
        for (Index r = 0; r < registers; ++r) {
            const Vec<double> value = load(now + r * WIDTH<double>);
            store(with + r * WIDTH<double>, value * load(likelihood + r * WIDTH<double>));
            parts += value;
        }
        const double whole = total<double>(parts);
        if (!in_range(whole) && whole > 0)
            for (Index j = 0; j < k; ++j) {
                now[j] /= whole;
                with[j] /= whole;
            }
    }

    // Adds the posteriors of step t, and scales its products for the sums of transitions: none lead to a first step.
    template <int N> ODECO_INLINE void collect(Index t) {
        const Index registers = N ? N : count;
        const double *now = alphas + t * padded, *later = betas + t * padded;
        double *sums = row(row_sums, t), *with = products + t * padded;
        Vec<double> parts{};
        for (Index r = 0; r < registers; ++r) parts += load(now + r * WIDTH<double>) * load(later + r * WIDTH<double>);
        const double whole = total<double>(parts), share = whole > 0 ? weight(t) / whole : 0;
        const double factor = shrunk[t] > 0 && !steps.first[t] ? share / shrunk[t] : 0;
        for (Index r = 0; r < registers; ++r) {
            const Index at = r * WIDTH<double>;
            const Vec<double> posterior = load(now + at) * load(later + at) * share;
            store(sums + at, load(sums + at) + posterior);
            store(with + at, load(with + at) * factor);
            if (steps.first[t]) store(start_sums + at, load(start_sums + at) + posterior);
        }
    }

    // Transitions from R states from i on.
    template <int N, int R> ODECO_INLINE void add_pairs(Index i) {
        const Index registers = N ? N : count;
        for (Index r = 0; r < registers; ++r) {
            Vec<double> sums[R]{};
            for (Index t = 1; t < n; ++t) {
                const Vec<double> right = load(products + t * padded + r * WIDTH<double>);
                for (int q = 0; q < R; ++q) sums[q] += alphas[(t - 1) * padded + i + q] * right;
            }
            for (int q = 0; q < R; ++q) store(pairs + (i + q) * padded + r * WIDTH<double>, sums[q]);
        }
    }
};

double expect_short(const Steps& steps, Span<const double> scales, Rows<const double> transmat, const double* start,
                    const ChainSums& out) {
    const Index m = steps.rows.n, k = transmat.n;
    Recursion recursion(steps, m, k);
    for (Index x = 0; x < m; ++x)
        for (Index j = 0; j < k; ++j) recursion.likelihoods[x * recursion.padded + j] = steps.rows[x][j];
    const double value = recursion.run(start, transmat.data, scales, out.transitions);
    for (Index x = 0; x < m; ++x)
        for (Index j = 0; j < k; ++j) out.row_sums[x][j] = recursion.row_sums[x * recursion.padded + j];
    for (Index j = 0; j < k; ++j) out.start_sums[j] = recursion.start_sums[j];
    return value;
}

constexpr double LEAST_COUNT = 1e-12;  // `odeco.families.simplex`: of all counts of a row, less is rounding
constexpr double LEAST_WEIGHT = 1e-8;  // `odeco.families.averages`
constexpr double LEAST_LOG = -650;     // `odeco.refinement.emissions`

// Counts plus pseudo-counts as proportions; a row without any weight stays as it is.
void proportions(const double* counts, double smoothing, const double* otherwise, Index d, double* out) {
    double sum = 0;
    for (Index x = 0; x < d; ++x) sum += counts[x] + smoothing;
    for (Index x = 0; x < d; ++x) out[x] = sum > LEAST_COUNT ? (counts[x] + smoothing) / sum : otherwise[x];
}

double log_dirichlet(const double* rows, Index size, double smoothing) {
    if (smoothing == 0) return 0;
    double sum = 0;
    for (Index i = 0; i < size; ++i) sum += log(larger(rows[i], 1e-300));
    return smoothing * sum;
}

void pack_simplex(const double* rows, Index size, double* out) {
    for (Index i = 0; i < size; ++i) out[i] = sqrt(rows[i]);
}

void unpack_simplex(const double* vector, Index n_rows, Index d, double* out) {
    for (Index i = 0; i < n_rows; ++i, vector += d, out += d) {
        double sum = 0;
        for (Index x = 0; x < d; ++x) sum += out[x] = larger(vector[x], 1e-12) * larger(vector[x], 1e-12);
        for (Index x = 0; x < d; ++x) out[x] /= sum;
    }
}

// Symbols 0 to d - 1, and d where one is missing: probabilities (k, d).
struct Symbols {
    static constexpr bool scaled = false;
    Index k, d;
    double smoothing;

    Index size() const { return k * d; }
    Index n_observations() const { return d + 1; }
    void likelihoods(const double* given, Rows<double> rows, double*) const {
        for (Index x = 0; x < d; ++x)
            for (Index j = 0; j < k; ++j) rows[x][j] = given[j * d + x];
        for (Index j = 0; j < k; ++j) rows[d][j] = 1;
    }
    void maximize(Rows<const double> sums, const double* given, double* out) const {
        Scratch<double> counts(d);
        for (Index j = 0; j < k; ++j) {
            for (Index x = 0; x < d; ++x) counts[x] = sums[x][j];
            proportions(counts, smoothing, given + j * d, d, out + j * d);
        }
    }
    double log_prior(const double* given) const { return log_dirichlet(given, size(), smoothing); }
    void pack(const double* given, double* out) const { pack_simplex(given, size(), out); }
    void unpack(const double* vector, double* out) const { unpack_simplex(vector, k, d, out); }
};

// Independent counts in each column, NaN where one is missing: rates (k, d).
struct Counts {
    static constexpr bool scaled = true;
    Index k;
    Rows<const double> values;
    const double* base;
    double floor;

    Index size() const { return k * values.width; }
    Index n_observations() const { return values.n; }
    void likelihoods(const double* rates, Rows<double> rows, double* scales) const {
        const Index d = values.width;
        Scratch<double> logs(size());
        for (Index i = 0; i < size(); ++i) logs[i] = log(rates[i]);
        for (Index x = 0; x < values.n; ++x) {
            double top = -HUGE_VAL;
            for (Index j = 0; j < k; ++j) {
                double sum = 0;
                for (Index c = 0; c < d; ++c)
                    if (!isnan(values[x][c])) sum += values[x][c] * logs[j * d + c] - rates[j * d + c];
                rows[x][j] = sum;
                top = larger(top, sum);
            }
            for (Index j = 0; j < k; ++j) rows[x][j] = exp(larger(rows[x][j] - top, LEAST_LOG));
            scales[x] = top + base[x];
        }
    }
    void maximize(Rows<const double> sums, const double* rates, double* out) const {
        const Index d = values.width;
        for (Index j = 0; j < k; ++j)
            for (Index c = 0; c < d; ++c) {
                double weight = 0, sum = 0;
                for (Index x = 0; x < values.n; ++x)
                    if (!isnan(values[x][c])) {
                        weight += sums[x][j];
                        sum += sums[x][j] * values[x][c];
                    }
                out[j * d + c] = larger(weight > LEAST_WEIGHT ? sum / weight : rates[j * d + c], floor);
            }
    }
    double log_prior(const double*) const { return 0; }
    void pack(const double* rates, double* out) const {
        for (Index i = 0; i < size(); ++i) out[i] = log(rates[i]);
    }
    void unpack(const double* vector, double* out) const {
        for (Index i = 0; i < size(); ++i) out[i] = exp(smaller(larger(vector[i], log(floor)), 600.0));
    }
};

// One step of EM on a state: start (k,), transitions (k, k) and what the family has, one after the other.
template <class Family> struct Em {
    const Family family;
    const Smoothing smoothing;
    const double total;
    const Index k, m;
    Recursion recursion;
    Scratch<double> scales, transitions;

    Em(const Family& family_, const Steps& steps, Index k_, Smoothing smoothing_, double total_)
        : family(family_), smoothing(smoothing_), total(total_), k(k_), m(family_.n_observations()),
          recursion(steps, m, k_), scales(m), transitions(k * k) {}

    Index size() const { return k + k * k + family.size(); }

    // The next state, and the objective of the given one per observation.
    double step(const double* state, double* image) {
        const double* moves = state + k;
        const Rows<double> likelihoods{recursion.likelihoods, m, recursion.padded};
        family.likelihoods(moves + k * k, likelihoods, scales);
        const double likelihood = recursion.run(state, moves, {scales, Family::scaled ? m : 0}, transitions);
        proportions(recursion.start_sums, smoothing.start, state, k, image);
        for (Index i = 0; i < k; ++i)
            proportions(transitions + i * k, smoothing.transitions, moves + i * k, k, image + k + i * k);
        family.maximize({recursion.row_sums, m, recursion.padded}, moves + k * k, image + k + k * k);
        const double prior = log_dirichlet(state, k, smoothing.start) +
                             log_dirichlet(moves, k * k, smoothing.transitions) + family.log_prior(moves + k * k);
        return (likelihood + prior) / total;
    }
    void pack(const double* state, double* out) const {
        pack_simplex(state, k + k * k, out);
        family.pack(state + k + k * k, out + k + k * k);
    }
    void unpack(const double* vector, double* out) const {
        unpack_simplex(vector, 1 + k, k, out);
        family.unpack(vector + k + k * k, out + k + k * k);
    }
};

constexpr int MEMORY = 5;  // `odeco.refinement.acceleration`, which this is, number for number
constexpr double DAMPING = 1e-8, LEAST_STRETCH = 2, MOST_STRETCH = 64;

// Solves a small positive definite system in place, by elimination with pivots.
void solve(double (&matrix)[MEMORY][MEMORY], double (&right)[MEMORY], int n) {
    for (int c = 0; c < n; ++c) {
        int pivot = c;
        for (int r = c + 1; r < n; ++r)
            if (fabs(matrix[r][c]) > fabs(matrix[pivot][c])) pivot = r;
        for (int j = 0; j < n; ++j) {
            const double kept = matrix[c][j];
            matrix[c][j] = matrix[pivot][j];
            matrix[pivot][j] = kept;
        }
        const double kept = right[c];
        right[c] = right[pivot];
        right[pivot] = kept;
        for (int r = c + 1; r < n; ++r) {
            const double factor = matrix[r][c] / matrix[c][c];
            for (int j = c; j < n; ++j) matrix[r][j] -= factor * matrix[c][j];
            right[r] -= factor * right[c];
        }
    }
    for (int c = n - 1; c >= 0; --c) {
        for (int j = c + 1; j < n; ++j) right[c] -= matrix[c][j] * right[j];
        right[c] /= matrix[c][c];
    }
}

// The last few points and the steps of EM from them; the oldest one first.
struct Memory {
    const Index size, stride;  // whole registers, padded by zeros
    int n = 0;
    Scratch<double> room, nothing;
    double *points[MEMORY + 1], *steps[MEMORY + 1];

    explicit Memory(Index size_)
        : size(size_), stride(RowShape<double>(size_).padded()), room(2 * (MEMORY + 1) * stride), nothing(stride) {
        for (int i = 0; i <= MEMORY; ++i) {
            points[i] = room + 2 * i * stride;
            steps[i] = points[i] + stride;
        }
    }

    // Room for one more, for the caller to fill.
    void push() {
        if (n <= MEMORY) {
            ++n;
            return;
        }
        double *point = points[0], *step = steps[0];
        for (int i = 0; i < MEMORY; ++i) {
            points[i] = points[i + 1];
            steps[i] = steps[i + 1];
        }
        points[MEMORY] = point;
        steps[MEMORY] = step;
    }
    double* point() const { return points[n - 1]; }
    double* step() const { return steps[n - 1]; }

    // x + f - (dX + dF) g, g the least-squares solution of dF g = f.
    void mix(double* out) const {
        const int m = n - 1;
        double gram[MEMORY][MEMORY], shares[MEMORY], trace = 0;
        for (int a = 0; a < m; ++a) {
            for (int b = 0; b <= a; ++b) gram[a][b] = gram[b][a] = bend_product(a, steps[b + 1], steps[b]);
            shares[a] = bend_product(a, step(), nothing);
            trace += gram[a][a];
        }
        for (int a = 0; a < m; ++a) gram[a][a] += DAMPING * trace + 1e-300;
        solve(gram, shares, m);
        for (Index i = 0; i < size; ++i) out[i] = point()[i] + step()[i];
        for (int a = 0; a < m; ++a)
            for (Index i = 0; i < size; ++i)
                out[i] -= shares[a] * ((points[a + 1][i] - points[a][i]) + (steps[a + 1][i] - steps[a][i]));
    }

    // <steps[a + 1] - steps[a], later - earlier>
    double bend_product(int a, const double* later, const double* earlier) const {
        Vec<double> sum{};
        for (Index i = 0; i < stride; i += WIDTH<double>)
            sum += (load(steps[a + 1] + i) - load(steps[a] + i)) * (load(later + i) - load(earlier + i));
        return total<double>(sum);
    }

    // The mixed point, or the stretched step where that lies behind: returns which.
    bool ahead(double stretch, double* out) const {
        mix(out);
        double along = 0;
        for (Index i = 0; i < size; ++i) along += (out[i] - point()[i]) * step()[i];
        if (!(along < 0)) return false;
        for (Index i = 0; i < size; ++i) out[i] = point()[i] + stretch * step()[i];
        return true;
    }
};

ODECO_INLINE void copy(const double* from, Index size, double* to) {
    for (Index i = 0; i < size; ++i) to[i] = from[i];
}

// Accelerated EM from a state, which becomes the best one; what was seen at each step, NaN for nothing.
template <class Family> Index climb(Em<Family> em, double* state, Rule rule, Span<double> seen) {
    const Index size = em.size();
    Scratch<double> current(size), image(size), trial(size), packed(size);
    Memory memory(size);
    copy(state, size, current);
    double best = -HUGE_VAL, stretch = 2 * LEAST_STRETCH;
    bool mixed = false, stretched = false;
    Index idle = 0;
    for (Index t = 0; t < seen.size; ++t) {
        const bool was_mixed = mixed;
        const double* point = mixed ? trial : current;
        const double value = em.step(point, image), gain = value - best;
        const bool better = value >= best;
        if (stretched) stretch = smaller(larger(stretch * (better ? 2.0 : 0.25), LEAST_STRETCH), MOST_STRETCH);
        mixed = stretched = false;
        if (!better) {
            memory.n = 0;
            // EM itself falls by rounding alone: nothing is left to gain, and the rule has to hear of it.
            const bool heard = !was_mixed && best > -HUGE_VAL;
            seen[t] = heard ? best : NAN;
            if (heard) idle = 0 >= rule.tol ? 0 : idle + 1;
            if (heard && idle >= rule.patience) return t + 1;
            continue;
        }
        memory.push();
        em.pack(point, memory.point());
        em.pack(image, memory.step());
        for (Index i = 0; i < size; ++i) memory.step()[i] -= memory.point()[i];
        if (memory.n > 1) {
            stretched = memory.ahead(stretch, packed);
            em.unpack(packed, trial);
            mixed = true;
        }
        copy(image, size, current);
        if (gain > 0) copy(image, size, state);
        idle = gain >= rule.tol ? 0 : idle + 1;
        best = seen[t] = value;
        if (idle >= rule.patience) return t + 1;
    }
    return seen.size;
}

Index climb_symbols(const Steps& steps, const ShortClimb& given, Index n_symbols, double smoothing, double* state,
                    Span<double> seen) {
    const Symbols family{given.k, n_symbols, smoothing};
    return climb<Symbols>({family, steps, given.k, given.smoothing, given.total}, state, given.rule, seen);
}

Index climb_counts(const Steps& steps, const ShortClimb& given, Rows<const double> values, const double* base,
                   double floor, double* state, Span<double> seen) {
    const Counts family{given.k, values, base, floor};
    return climb<Counts>({family, steps, given.k, given.smoothing, given.total}, state, given.rule, seen);
}

}  // namespace

const ShortChainKernels short_chains{expect_short, climb_symbols, climb_counts};

}  // namespace odeco::ODECO_ISA
