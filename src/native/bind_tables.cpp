// Python's door to `tables.cpp`.
#include <nanobind/stl/pair.h>

#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Doubles = Vector<const double>;

// The columns, and how many parameters a component has.
std::pair<TableColumns, Index> columns_of(Index n_bernoulli, Index n_poisson, Index n_gaussian,
                                          const Vector<const std::int64_t>& blocks,
                                          const Vector<const std::int32_t>& mask_of, Index n_features) {
    require(n_bernoulli >= 0 && n_poisson >= 0 && n_gaussian >= 0, "numbers of columns must not be negative.");
    require_at_least("blocks", extent(blocks), 1);
    require(blocks.data()[0] == 0, "blocks must begin with 0.");
    require_ends("blocks", blocks.data(), extent(blocks), n_features);
    exactly("mask_of", mask_of, n_bernoulli + n_poisson + n_gaussian);
    const Index size = n_bernoulli + blocks.data()[extent(blocks) - 1] + n_poisson + 2 * n_gaussian;
    require_at_least("features", n_features, size);
    for (Index i = 0; i < extent(mask_of); ++i)
        if (mask_of.data()[i] < -1 || mask_of.data()[i] >= n_features - size)
            throw std::out_of_range("mask_of must lie between -1 and the number of masks.");
    return {{n_bernoulli, n_poisson, n_gaussian, span(blocks), span(mask_of)}, size};
}

std::pair<Index, bool> climb_tables(const Matrix<const double>& features, const Doubles& weights, const Doubles& overall,
                                    double total, double prior, Index n_bernoulli, Index n_poisson, Index n_gaussian,
                                    const Vector<const std::int64_t>& blocks, const Vector<const std::int32_t>& mask_of,
                                    Index k, Index max_iter, double tol, bool accelerate, const Matrix<double>& state,
                                    const Vector<double>& values, const Vector<double>& likelihoods,
                                    const Vector<double>& seen, const Vector<std::int64_t>& counts) {
    const Index p = extent(features), n = extent(features, 1), n_mixtures = extent(state);
    const auto [columns, size] = columns_of(n_bernoulli, n_poisson, n_gaussian, blocks, mask_of, p);
    require(n >= 1 && n_mixtures >= 1 && k >= 1 && max_iter >= 1, "samples, mixtures, k and max_iter must be above 0.");
    require(total > 0, "total must be above 0.");
    if (extent(weights) > 0) exactly("weights", weights, n);
    exactly("state", state, n_mixtures, k * (1 + size));
    exactly("values", values, n_mixtures);
    exactly("likelihoods", likelihoods, n_mixtures);
    require_at_least("seen", extent(seen), max_iter + 1);
    require_at_least("counts", extent(counts), extent(seen));
    const TableData data{rows(features), span(weights), exactly("overall", overall, p), total, prior};
    const TableClimbed done = tables().climb_tables(data, columns, n_mixtures, k, {max_iter, tol, accelerate}, state.data(),
                                                    values.data(), likelihoods.data(), span(seen), counts.data());
    return {done.n_records, done.converged};
}

}  // namespace

void bind_tables(nb::module_& module) { define(module, "climb_tables", climb_tables); }

}  // namespace odeco
