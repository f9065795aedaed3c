// Python's door to `sparse.cpp`.
#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Indptr = Vector<const std::int64_t>;
using Columns = Vector<const std::int32_t>;

template <class Real>
void project_rows(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                  const Matrix<const Real>& block, Index start, Index stop, const Matrix<Real>& out) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(block));
    require_at_least("out", extent(out), stop - start);
    require_at_least("the rows of block", extent(block, 1), extent(out, 1));
    sparse<Real>().project_rows(counts, rows(block), range, rows(out));
}

template <class Real>
void scatter_rows(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                  const Vector<const Real>& weights, const Matrix<const Real>& dense, Index start, Index stop,
                  const Matrix<Real>& out) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(out));
    require_at_least("rows", extent(dense), stop - start);
    require_at_least("the rows of out", extent(out, 1), extent(dense, 1));
    sparse<Real>().scatter_rows(counts, exactly("weights", weights, counts.n_rows), rows(dense), range, rows(out));
}

template <class Real>
void gram_rows(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
               const Vector<const Real>& weights, const Matrix<const Real>& block, Index start, Index stop,
               const Matrix<Real>& out) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(block));
    exactly("out", out, extent(block), extent(block, 1));
    sparse<Real>().gram_rows(counts, exactly("weights", weights, counts.n_rows), rows(block), range, rows(out));
}

template <class Real>
double posterior_rows(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                      const Vector<const double>& weights, const Matrix<const double>& logs,
                      const Vector<const double>& log_weights, Index start, Index stop, const Vector<double>& totals,
                      const Matrix<double>& out) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(logs));
    const Index k = extent(logs, 1);
    require_at_least("the number of topics", k, 1);
    return sparse<Real>().posterior_rows(counts, exactly("weights", weights, counts.n_rows), rows(logs),
                                         exactly("log_weights", log_weights, k), range, exactly("totals", totals, k),
                                         exactly("out", out, extent(logs), k));
}

template <class Real>
void posterior_sets(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                    const Vector<const double>& weights, const Matrix<const double>& logs,
                    const Matrix<const double>& log_weights, Index start, Index stop, const Matrix<double>& totals,
                    const Matrix<double>& out, const Vector<double>& likelihoods) {
    const Range range{start, stop};
    const Csr<Real> counts = csr<Real>(indptr, columns, values, range, extent(logs));
    const Index n = extent(log_weights), k = extent(log_weights, 1);
    require_at_least("the number of mixtures", n, 1);
    require_at_least("the number of components", k, 1);
    const PosteriorSets sums{exactly("totals", totals, n, k).data, exactly("likelihoods", likelihoods, n),
                             exactly("out", out, extent(logs), n * k)};
    sparse<Real>().posterior_sets(counts, exactly("weights", weights, counts.n_rows),
                                  exactly("logs", logs, extent(logs), n * k), rows(log_weights), range, sums);
}

template <class Real>
void weighted_column_sums(const Indptr& indptr, const Columns& columns, const Vector<const Real>& values,
                          const Vector<const double>& weights, const Vector<double>& out) {
    const Csr<Real> counts = csr<Real>(indptr, columns, values, extent(out));
    sparse<Real>().weighted_column_sums(counts, exactly("weights", weights, counts.n_rows), out.data());
}

template <class Real> void bind(nb::module_& module) {
    define(module, "project_rows", project_rows<Real>);
    define(module, "scatter_rows", scatter_rows<Real>);
    define(module, "gram_rows", gram_rows<Real>);
    define(module, "posterior_rows", posterior_rows<Real>);
    define(module, "posterior_sets", posterior_sets<Real>);
    define(module, "weighted_column_sums", weighted_column_sums<Real>);
}

}  // namespace

void bind_words(nb::module_& module) {
    bind<float>(module);
    bind<double>(module);
}

}  // namespace odeco
