// Python's door to `documents.cpp` and `cvb0.cpp`.
#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Indptr = Vector<const std::int64_t>;
using Columns = Vector<const std::int32_t>;

template <class Real>
void infer_rows(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                const Matrix<const Real>& topics, const Vector<const Real>& alpha, Index start, Index stop, Index n_iter,
                double tol, const Matrix<Real>& strengths) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(topics));
    const Index k = extent(topics, 1);
    documents<Real>().infer_rows(counts, rows(topics), exactly("alpha", alpha, k), range, n_iter, tol,
                                 exactly("strengths", strengths, counts.n_rows, k));
}

template <class Real>
void infer_steps(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                 const Matrix<const Real>& topics, const Vector<const Real>& alpha, Index start, Index stop, Index n_iter,
                 const Matrix<Real>& strengths) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(topics));
    const Index k = extent(topics, 1);
    documents<Real>().infer_steps(counts, rows(topics), exactly("alpha", alpha, k), range, n_iter,
                                  exactly("strengths", strengths, counts.n_rows, k));
}

template <class Real>
double em_rows(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
               const Matrix<const Real>& topics, const Vector<const Real>& alpha, Index start, Index stop, Index n_iter,
               bool variational, const Vector<const Real>& row_weights, const Matrix<Real>& strengths,
               const Matrix<Real>& word_counts) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(topics));
    const Index n = counts.n_rows, k = extent(topics, 1);
    return documents<Real>().em_rows(counts, rows(topics), exactly("alpha", alpha, k), range, n_iter, variational,
                                     exactly("row_weights", row_weights, n), exactly("strengths", strengths, n, k),
                                     exactly("word_counts", word_counts, extent(topics), k));
}

template <class Real>
void cvb0_rows(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
               const Matrix<const Real>& topics, const Vector<const Real>& own_word, const Vector<const Real>& alpha,
               Index start, Index stop, Index n_em, Index n_iter, bool echo, const Vector<const Real>& row_weights,
               const Matrix<Real>& strengths, const Matrix<Real>& spreads, const Matrix<Real>& word_counts) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(topics));
    const Index n = counts.n_rows, k = extent(topics, 1);
    const Cvb0Arrays<Real> arrays{.topics = rows(topics),
                                  .own_word = exactly("own_word", own_word, k),
                                  .alpha = exactly("alpha", alpha, k),
                                  .row_weights = exactly("row_weights", row_weights, n),
                                  .strengths = exactly("strengths", strengths, n, k),
                                  .spreads = exactly("spreads", spreads, n, k),
                                  .word_counts = exactly("word_counts", word_counts, extent(topics), k)};
    cvb0<Real>(k).cvb0_rows(counts, arrays, range, n_em, n_iter, echo);
}

template <class Real>
double smoothed_log_likelihood(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                               const Matrix<const Real>& word_counts, const Matrix<const Real>& mixing, double eta) {
    const Csr<Real> counts = csr<Real>(indptr, columns, values, extent(word_counts));
    return documents<Real>().smoothed_log_likelihood(
        counts, rows(word_counts), exactly("mixing", mixing, counts.n_rows, extent(word_counts, 1)), eta);
}

template <class Real>
void gibbs_rows(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                const Matrix<const Real>& topics, const Vector<const Real>& alpha, const Vector<const double>& uniforms,
                const Vector<std::int64_t>& assignments, const Matrix<Real>& strengths) {
    const Csr<Real> counts = csr<Real>(indptr, columns, values, extent(topics));
    const Index k = extent(topics, 1), n_tokens = extent(columns);
    std::int64_t* topic_of = exactly("assignments", assignments, n_tokens);
    for (Index p = 0; p < n_tokens; ++p)
        if (topic_of[p] >= k) throw std::out_of_range("an assignment names a topic that there is not.");
    require_at_least("the number of topics", k, 1);
    documents<Real>().gibbs_rows(counts, rows(topics), exactly("alpha", alpha, k), exactly("uniforms", uniforms, n_tokens),
                                 topic_of, exactly("strengths", strengths, counts.n_rows, k));
}

void log_likelihood_rows(const Indptr& indptr, const Columns& columns, const Vector<const float>& values,
                         const Matrix<const double>& topics, const Matrix<const double>& proportions, Index start,
                         Index stop, const Vector<double>& out) {
    const Range range{start, stop};
    const Csr<float> counts = csr<float>(indptr, columns, values, range, extent(topics));
    scoring().log_likelihood_rows(counts, rows(topics),
                                  exactly("proportions", proportions, counts.n_rows, extent(topics, 1)), range,
                                  exactly("out", out, counts.n_rows));
}

template <class Real>
void mix_rows(const Matrix<const Real>& fresh, const Matrix<const Real>& old, double share, const Matrix<Real>& out,
              const Vector<double>& totals) {
    const Index n = extent(fresh), width = extent(fresh, 1);
    documents<Real>().mix_rows(rows(fresh), exactly("old", old, n, width).data, Real(share),
                               exactly("out", out, n, width).data, exactly("totals", totals, width));
}

template <class Real>
void smooth_rows(const Matrix<const Real>& word_counts, double eta, const Vector<const Real>& inverse,
                 const Matrix<Real>& out) {
    const Index n = extent(word_counts), width = extent(word_counts, 1);
    documents<Real>().smooth_rows(rows(word_counts), Real(eta), exactly("inverse", inverse, width),
                                  exactly("out", out, n, width).data);
}

template <class Real> void bind(nb::module_& module) {
    define(module, "infer_rows", infer_rows<Real>);
    define(module, "infer_steps", infer_steps<Real>);
    define(module, "em_rows", em_rows<Real>);
    define(module, "cvb0_rows", cvb0_rows<Real>);
    define(module, "smoothed_log_likelihood", smoothed_log_likelihood<Real>);
    define(module, "gibbs_rows", gibbs_rows<Real>);
    define(module, "mix_rows", mix_rows<Real>);
    define(module, "smooth_rows", smooth_rows<Real>);
}

}  // namespace

void bind_documents(nb::module_& module) {
    bind<float>(module);
    bind<double>(module);
    define(module, "log_likelihood_rows", log_likelihood_rows);
    module.attr("CVB0_FLOOR") = CVB0_FLOOR;
    module.attr("CVB0_LEAST_REST") = CVB0_LEAST_REST;
}

}  // namespace odeco
