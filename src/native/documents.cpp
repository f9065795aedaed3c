// Loops over the nonzeros of documents: EM for their proportions, expected counts of words, likelihoods, Gibbs sweeps.
#include <math.h>

#include "kernels.hpp"
#include "shares.hpp"

namespace odeco::ODECO_ISA {
namespace {

ODECO_INLINE float logarithm(float x) { return logf(x); }
ODECO_INLINE double logarithm(double x) { return log(x); }

template <int N, class Real>
ODECO_INLINE void infer_document(const Words<N, Real>& words, const Real* alpha, Index d, Index n_iter, Real tol,
                                 Real* strengths, Real* row, Real* sums) {
    constexpr int W = WIDTH<Real>;
    const Index n = words.registers();
    Real length = 0;
    for (Index p = words.counts.indptr[d]; p < words.counts.indptr[d + 1]; ++p) length += words.counts.values[p];
    Vec<Real> prior{};
    for (Index i = 0; i < n; ++i) {
        store(row + i * W, words.part(strengths, i));
        prior += words.part(alpha, i);
    }
    length += total<Real>(prior);
    for (Index step = 0; step < n_iter; ++step) {
        for (Index i = 0; i < n; ++i) store(sums + i * W, Vec<Real>{});
        add_shares(words, d, row, sums);
        Vec<Real> changes{};
        for (Index i = 0; i < n; ++i) {
            const Vec<Real> now = load(row + i * W), next = words.part(alpha, i) + now * load(sums + i * W);
            changes = maximum<Real>(changes, maximum<Real>(next - now, now - next));
            store(row + i * W, next);
        }
        if (largest<Real>(changes) <= tol * length) break;
    }
    for (Index i = 0; i < n; ++i) store(strengths, i, n, words.shape.tail, load(row + i * W));
}

template <class Real>
void infer_rows(Csr<Real> counts, Rows<const Real> topics, const Real* alpha, Range range, Index n_iter, double tol,
                Rows<Real> strengths) {
    RowShape<Real> shape(topics.width);
    Scratch<Real> row(shape.padded()), sums(shape.padded());
    with_registers(shape.count, [&](auto n) {
        Words<n.value, Real> words{counts, topics, shape};
        for (Index d = range.start; d < range.stop; ++d)
            infer_document<n.value, Real>(words, alpha, d, n_iter, Real(tol), strengths[d], row, sums);
    });
}

template <class Real>
void infer_steps(Csr<Real> counts, Rows<const Real> topics, const Real* alpha, Range range, Index n_iter,
                 Rows<Real> strengths) {
    RowShape<Real> shape(topics.width);
    Scratch<Real> weights(shape.padded()), sums(shape.padded());
    with_registers(shape.count, [&](auto n) {
        Words<n.value, Real> words{counts, topics, shape};
        for (Index d = range.start; d < range.stop; ++d)
            em_steps<n.value, Real>(words, alpha, d, n_iter, false, strengths[d], weights, sums);
    });
}

// `add_shares`, with c_w r_wk times the document's weight added to the counts of words; the likelihood by that weight.
template <int N, class Real>
ODECO_INLINE double scatter_shares(const Words<N, Real>& words, Index d, Real row_weight, const Real* weights, Real* sums,
                                   Rows<Real> word_counts) {
    const Index n = words.registers();
    double log_likelihood = 0;
    for (Index p = words.counts.indptr[d]; p < words.counts.indptr[d + 1]; ++p) {
        const Real *topic = words.topic(p), count = words.counts.values[p];
        Real* target = word_counts[words.counts.columns[p]];
        Vec<Real> parts{};
        for (Index i = 0; i < n; ++i) parts += load(weights + i * WIDTH<Real>) * words.part(topic, i);
        Real norm = total<Real>(parts), share = count / norm;
        for (Index i = 0; i < n; ++i) {
            Vec<Real> part = share * words.part(topic, i);
            store(sums + i * WIDTH<Real>, load(sums + i * WIDTH<Real>) + part);
            part *= row_weight * load(weights + i * WIDTH<Real>);
            store(target, i, n, words.shape.tail, words.part(target, i) + part);
        }
        log_likelihood += count * logarithm(norm);
    }
    return row_weight * log_likelihood;
}

template <int N, class Real>
ODECO_INLINE double em_document(const Words<N, Real>& words, const Real* alpha, Index d, Index n_iter, bool variational,
                                Real row_weight, Real* strengths, Rows<Real> word_counts, Real* weights, Real* sums) {
    const Index k = words.topics.width;
    em_steps(words, alpha, d, n_iter - 1, variational, strengths, weights, sums);
    if (n_iter < 1) return 0;
    begin_em_step(strengths, alpha, k, variational, weights, sums);
    const double log_likelihood = scatter_shares(words, d, row_weight, weights, sums, word_counts);
    for (Index i = 0; i < k; ++i) strengths[i] = sums[i] * weights[i];
    return log_likelihood;
}

template <class Real>
double em_rows(Csr<Real> counts, Rows<const Real> topics, const Real* alpha, Range range, Index n_iter, bool variational,
               const Real* row_weights, Rows<Real> strengths, Rows<Real> word_counts) {
    RowShape<Real> shape(topics.width);
    Scratch<Real> weights(shape.padded()), sums(shape.padded());
    double log_likelihood = 0;
    with_registers(shape.count, [&](auto n) {
        Words<n.value, Real> words{counts, topics, shape};
        for (Index d = range.start; d < range.stop; ++d)
            log_likelihood += em_document<n.value, Real>(words, alpha, d, n_iter, variational, row_weights[d],
                                                         strengths[d], word_counts, weights, sums);
    });
    return log_likelihood;
}

template <class Real> ODECO_INLINE Real inner(const Real* a, const Real* b, RowShape<Real> shape) {
    Vec<Real> parts{};
    for (Index i = 0; i < shape.count; ++i)
        parts += load(a, i, shape.count, shape.tail) * load(b, i, shape.count, shape.tail);
    return total<Real>(parts);
}

template <class Real>
double smoothed_log_likelihood(Csr<Real> counts, Rows<const Real> word_counts, Rows<const Real> mixing, double eta) {
    RowShape<Real> shape(mixing.width);
    double sum = 0;
    for (Index d = 0; d < counts.n_rows; ++d) {
        Vec<Real> parts{};
        for (Index i = 0; i < shape.count; ++i) parts += load(mixing[d], i, shape.count, shape.tail);
        const Real rest = Real(eta) * total<Real>(parts);
        for (Index p = counts.indptr[d]; p < counts.indptr[d + 1]; ++p)
            sum += counts.values[p] * logarithm(inner(mixing[d], word_counts[counts.columns[p]], shape) + rest);
    }
    return sum;
}

void log_likelihood_rows(Csr<float> counts, Rows<const double> topics, Rows<const double> proportions, Range range,
                         double* out) {
    RowShape<double> shape(topics.width);
    for (Index d = range.start; d < range.stop; ++d) {
        out[d] = 0;
        for (Index p = counts.indptr[d]; p < counts.indptr[d + 1]; ++p)
            out[d] += counts.values[p] * log(larger(inner(proportions[d], topics[counts.columns[p]], shape), 1e-300));
    }
}

template <class Real>
void gibbs_rows(Csr<Real> counts, Rows<const Real> topics, const Real* alpha, const double* uniforms,
                std::int64_t* assignments, Rows<Real> strengths) {
    const Index k = topics.width;
    Scratch<Real> cumulative(k);
    for (Index d = 0; d < counts.n_rows; ++d) {
        Real* mine = strengths[d];
        for (Index p = counts.indptr[d]; p < counts.indptr[d + 1]; ++p) {
            const Real* topic = topics[counts.columns[p]];
            std::int64_t& chosen = assignments[p];
            if (chosen >= 0) mine[chosen] = larger(mine[chosen] - counts.values[p], Real(0));
            Real sum = 0;
            for (Index i = 0; i < k; ++i) cumulative[i] = sum += topic[i] * (mine[i] + alpha[i]);
            const double level = uniforms[p] * sum;
            Index next = 0;
            while (next < k - 1 && cumulative[next] < level) ++next;
            chosen = next;
            mine[next] += counts.values[p];
        }
    }
}

constexpr Index SUMMED = 64;  // rows that are added up in the precision of the rows, before they go into double sums

template <class Real>
void mix_rows(Rows<const Real> fresh, const Real* old, Real share, Real* out, double* totals) {
    const Index width = fresh.width;
    Scratch<Real> sums(width);
    for (Index w = 0; w < fresh.n; ++w) {
        for (Index i = 0; i < width; ++i) {
            const Real value = fresh[w][i] + share * old[w * width + i];
            out[w * width + i] = value;
            sums[i] += value;
        }
        if ((w + 1) % SUMMED != 0 && w + 1 < fresh.n) continue;
        for (Index i = 0; i < width; ++i) {
            totals[i] += double(sums[i]);
            sums[i] = 0;
        }
    }
}

template <class Real> void smooth_rows(Rows<const Real> word_counts, Real eta, const Real* inverse, Real* out) {
    for (Index w = 0; w < word_counts.n; ++w)
        for (Index i = 0; i < word_counts.width; ++i)
            out[w * word_counts.width + i] = (word_counts[w][i] + eta) * inverse[i];
}

template <class Real>
constexpr DocumentKernels<Real> table{infer_rows<Real>, infer_steps<Real>, em_rows<Real>, smoothed_log_likelihood<Real>,
                                      gibbs_rows<Real>, mix_rows<Real>, smooth_rows<Real>};

}  // namespace

const DocumentKernels<float> documents32 = table<float>;
const DocumentKernels<double> documents64 = table<double>;
const ScoringKernels scoring{log_likelihood_rows};

}  // namespace odeco::ODECO_ISA
