// Products of a CSR matrix with tall dense blocks (section 6.1.2 of the paper), fused where BLAS and scipy are not.
//
// A row of the block is read or written for each nonzero: the products are bound by memory. Sums over the nonzeros of a
// row stay in registers, a panel of columns at a time; the row of column numbers that is read again is in the cache.
#include <math.h>

#include "exponential.hpp"
#include "kernels.hpp"
#include "logarithm.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int PANEL = 4;  // registers of sums: enough to hide latencies, few enough for 16 registers in all

// work(constant, first register) for all panels of a row.
template <class Work> ODECO_INLINE void over_panels(Index count, Work work) {
    Index at = 0;
    for (; at + PANEL <= count; at += PANEL) work(Constant<PANEL>{}, at);
    for (; at < count; ++at) work(Constant<1>{}, at);
}

// out = sum_p values[p] block[columns[p]], over the nonzeros of row j.
template <class Count, class Real>
ODECO_INLINE void gather(Csr<Count> c, Index j, Rows<const Real> block, RowShape<Real> shape, Real* out) {
    over_panels(shape.count, [&](auto constant, Index at) {
        constexpr int n = constant.value;
        Vec<Real> even[n]{}, odd[n]{};  // two chains of sums, so that additions do not wait for one another
        auto add = [&](Index p, Vec<Real>* sums) __attribute__((always_inline)) {
            const Real* row = block[c.columns[p]];
            for (int i = 0; i < n; ++i) sums[i] += Real(c.values[p]) * load(row, at + i, shape.count, shape.tail);
        };
        Index p = c.indptr[j], last = c.indptr[j + 1];
        for (; p + 2 <= last; p += 2) {
            add(p, even);
            add(p + 1, odd);
        }
        if (p < last) add(p, even);
        for (int i = 0; i < n; ++i) store(out, at + i, shape.count, shape.tail, even[i] + odd[i]);
    });
}

// out[columns[p]] += values[p] weight row, over the nonzeros of row j.
template <class Count, class Real>
ODECO_INLINE void scatter(Csr<Count> c, Index j, Real weight, const Real* row, RowShape<Real> shape, Rows<Real> out) {
    over_panels(shape.count, [&](auto constant, Index at) {
        constexpr int n = constant.value;
        Vec<Real> scaled[n];
        for (int i = 0; i < n; ++i) scaled[i] = weight * load(row, at + i, shape.count, shape.tail);
        for (Index p = c.indptr[j]; p < c.indptr[j + 1]; ++p) {
            Real* target = out[c.columns[p]];
            for (int i = 0; i < n; ++i) {
                auto sum = load(target, at + i, shape.count, shape.tail) + Real(c.values[p]) * scaled[i];
                store(target, at + i, shape.count, shape.tail, sum);
            }
        }
    });
}

template <class Real> void project_rows(Csr<Real> c, Rows<const Real> block, Range range, Rows<Real> out) {
    RowShape<Real> shape(out.width);
    for (Index j = range.start; j < range.stop; ++j) gather(c, j, block, shape, out[j - range.start]);
}

template <class Real>
void scatter_rows(Csr<Real> c, const Real* weights, Rows<const Real> rows, Range range, Rows<Real> out) {
    RowShape<Real> shape(rows.width);
    for (Index j = range.start; j < range.stop; ++j)
        if (weights[j] != 0) scatter(c, j, weights[j], rows[j - range.start], shape, out);
}

template <class Real>
void gram_rows(Csr<Real> c, const Real* weights, Rows<const Real> block, Range range, Rows<Real> out) {
    RowShape<Real> shape(block.width);
    Scratch<Real> row(shape.padded());
    for (Index j = range.start; j < range.stop; ++j) {
        if (weights[j] == 0) continue;
        gather(c, j, block, shape, +row);
        scatter<Real, Real>(c, j, weights[j], row, shape, out);
    }
}

// A document's log joint densities to shares of its topics, and these to the sums, while they are in the cache. In double
// precision, whatever that of the counts: log-likelihoods are compared to many digits.
template <class Count>
double posterior_rows(Csr<Count> c, const double* weights, Rows<const double> logs, const double* log_weights, Range range,
                      double* totals, Rows<double> out) {
    constexpr int W = WIDTH<double>;
    const RowShape<double> shape(logs.width);
    Scratch<double> row(shape.padded()), prior(shape.padded()), sums(shape.padded());
    for (Index i = 0; i < shape.padded(); ++i) prior[i] = i < logs.width ? log_weights[i] : -INFINITY;
    double log_likelihood = 0;
    for (Index j = range.start; j < range.stop; ++j) {
        if (weights[j] == 0) continue;
        gather<Count, double>(c, j, logs, shape, row);
        Vec<double> top = repeat(-double(INFINITY)), parts{};
        for (Index i = 0; i < shape.padded(); i += W) top = maximum<double>(top, load(row + i) + load(prior + i));
        const double highest = largest<double>(top);
        for (Index i = 0; i < shape.padded(); i += W) {
            const Vec<double> value = exponential<double>(load(row + i) + load(prior + i) - highest);
            parts += value;
            store(row + i, value);
        }
        const double sum = total<double>(parts), weight = weights[j] / sum;
        for (Index i = 0; i < shape.padded(); i += W) store(sums + i, load(sums + i) + weight * load(row + i));
        scatter<Count, double>(c, j, weight, row, shape, out);
        log_likelihood += weights[j] * (highest + log(sum));
    }
    for (Index i = 0; i < logs.width; ++i) totals[i] += sums[i];
    return log_likelihood;
}

// The same for several mixtures of as many components, side by side: a row of counts is read once for all of them.
template <class Count>
void posterior_sets(Csr<Count> c, const double* weights, Rows<const double> logs, Rows<const double> log_weights, Range range,
                    const PosteriorSets& out) {
    constexpr int W = WIDTH<double>;
    const Index n = log_weights.n, k = log_weights.width;
    const RowShape<double> shape(logs.width), sets(n);
    Scratch<double> row(shape.padded()), totals(shape.padded()), highest(sets.padded()), sums(sets.padded()),
        likelihoods(sets.padded());
    for (Index i = 0; i < sets.padded(); ++i) sums[i] = 1;
    for (Index j = range.start; j < range.stop; ++j) {
        if (weights[j] == 0) continue;
        gather<Count, double>(c, j, logs, shape, row);
        for (Index s = 0; s < n; ++s) {
            double *part = row + s * k, top = -INFINITY;
            for (Index i = 0; i < k; ++i) top = larger(top, part[i] += log_weights[s][i]);
            for (Index i = 0; i < k; ++i) part[i] -= top;
            highest[s] = top;
        }
        for (Index i = 0; i < shape.padded(); i += W) store(row + i, exponential<double>(load(row + i)));
        for (Index s = 0; s < n; ++s) {
            double *part = row + s * k, sum = 0;
            for (Index i = 0; i < k; ++i) sum += part[i];
            const double share = weights[j] / (sums[s] = sum);
            for (Index i = 0; i < k; ++i) totals[s * k + i] += part[i] *= share;
        }
        for (Index i = 0; i < sets.padded(); i += W) {
            const Vec<double> sum = load(sums + i);  // less itself it is 0, or NaN, which a logarithm would lose
            const Vec<double> value = load(highest + i) + (logarithm(sum) + (sum - sum));
            store(likelihoods + i, load(likelihoods + i) + weights[j] * value);
        }
        scatter<Count, double>(c, j, 1.0, row, shape, out.sums);
    }
    for (Index i = 0; i < logs.width; ++i) out.totals[i] += totals[i];
    for (Index s = 0; s < n; ++s) out.likelihoods[s] += likelihoods[s];
}

// In double precision, whatever that of the counts.
template <class Real> void weighted_column_sums(Csr<Real> c, const double* weights, double* out) {
    for (Index j = 0; j < c.n_rows; ++j)
        if (weights[j] != 0)
            for (Index p = c.indptr[j]; p < c.indptr[j + 1]; ++p) out[c.columns[p]] += weights[j] * c.values[p];
}

template <class Real>
constexpr SparseKernels<Real> table{project_rows<Real>, scatter_rows<Real>, gram_rows<Real>, posterior_rows<Real>,
                                    posterior_sets<Real>, weighted_column_sums<Real>};

}  // namespace

const SparseKernels<float> sparse32 = table<float>;
const SparseKernels<double> sparse64 = table<double>;

}  // namespace odeco::ODECO_ISA
