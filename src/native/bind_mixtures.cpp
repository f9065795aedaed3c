// Python's door to the densities of mixtures and sums by responsibilities: `gaussian.cpp`, `mixtures.cpp`,
// `posteriors.cpp`, `quadratic.cpp`, `view_moments.cpp`.
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Doubles = Vector<const double>;
using Table = Matrix<const double>;

void diagonal_rows(const Table& values, const Doubles& center, const Table& linear, const Table& half,
                   const Table& constants, double least, const Matrix<double>& out, const Vector<double>& scales) {
    const Index n = extent(values), d = extent(values, 1), k = extent(out, 1);
    exactly("out", out, n, k);
    gaussian().diagonal_rows(rows(values), exactly("center", center, d), exactly("linear", linear, d, k),
                             exactly("half", half, d, k).data, exactly("constants", constants, d, k).data, least,
                             rows(out), exactly("scales", scales, n));
}

void diagonal_sums(const Table& values, const Doubles& center, const Table& weights, const Matrix<double>& totals,
                   const Matrix<double>& first, const Matrix<double>& second) {
    const Index n = extent(values), d = extent(values, 1), k = extent(weights, 1);
    exactly("weights", weights, n, k);
    gaussian().diagonal_sums(rows(values), exactly("center", center, d), rows(weights),
                             exactly("totals", totals, k, d).data, exactly("first", first, k, d).data,
                             exactly("second", second, k, d).data);
}

void full_rows(const Table& values, const Doubles& center, const Cube<const double>& triangles, const Table& shifts,
               const Doubles& constants, double least, const Matrix<double>& out, const Vector<double>& scales) {
    const Index n = extent(values), d = extent(values, 1), k = extent(out, 1);
    exactly("out", out, n, k);
    gaussian().full_rows(rows(values), exactly("center", center, d), exactly("triangles", triangles, k, d, d),
                         exactly("shifts", shifts, k, d), exactly("constants", constants, k), least, rows(out),
                         exactly("scales", scales, n));
}

void full_sums(const Table& values, const Doubles& center, const Table& weights, const Vector<double>& totals,
               const Matrix<double>& first, const Cube<double>& second) {
    const Index n = extent(values), d = extent(values, 1), k = extent(weights, 1);
    exactly("weights", weights, n, k);
    gaussian().full_sums(rows(values), exactly("center", center, d), rows(weights), exactly("totals", totals, k),
                         exactly("first", first, k, d).data, exactly("second", second, k, d, d));
}

template <class Real>
void normalize(const Matrix<Real>& joint, const Vector<Real>& highest, const Vector<Real>& totals) {
    const Index m = extent(joint, 1);
    mixture<Real>().normalize(rows(joint), exactly("highest", highest, m), exactly("totals", totals, m));
}

template <class Real>
PosteriorSums<Real> posterior_arrays(Index k, Index p, Index n, const Matrix<double>& sums, const Vector<double>& totals,
                                     const Matrix<Real>& highest, const Matrix<Real>& norms) {
    const Index groups = extent(highest);
    require(groups > 0 ? k % groups == 0 && k > 0 : k == 0, "every mixture must have as many components, one or more.");
    return {exactly("sums", sums, k, p).data, exactly("totals", totals, k), exactly("highest", highest, groups, n).data,
            exactly("norms", norms, groups, n).data};
}

template <class Real>
void posterior_sums(const Matrix<const Real>& features, Index start, Index stop, const Doubles& weights,
                    const Matrix<const Real>& coefficients, const Vector<const Real>& offsets, const Matrix<double>& sums,
                    const Vector<double>& totals, const Matrix<Real>& highest, const Matrix<Real>& norms) {
    const Index p = extent(features), n = extent(features, 1), k = extent(coefficients), groups = extent(highest);
    const Range range = range_of(start, stop, n);
    if (extent(weights) > 0) exactly("weights", weights, n);
    const PosteriorSums<Real> out = posterior_arrays(k, p, stop - start, sums, totals, highest, norms);
    posteriors<Real>().posterior_sums(
        rows(features), range, span(weights),
        {exactly("coefficients", coefficients, k, p), exactly("offsets", offsets, k), groups}, out);
}

template <class Real>
QuadraticMixture<Real> quadratic_of(const Matrix<const Real>& features, const Cube<const Real>& triangles,
                                    const Matrix<const Real>& shifts, const Vector<const Real>& constants) {
    const Index k = extent(shifts), d = extent(shifts, 1);
    require_at_least("features", extent(features), d);
    return {exactly("triangles", triangles, k, d, d), rows(shifts), exactly("constants", constants, k)};
}

template <class Real>
void quadratic_densities(const Matrix<const Real>& features, const Cube<const Real>& triangles,
                         const Matrix<const Real>& shifts, const Vector<const Real>& constants, const Matrix<Real>& out) {
    const QuadraticMixture<Real> mixture = quadratic_of(features, triangles, shifts, constants);
    quadratic<Real>().quadratic_densities(rows(features), mixture,
                                          exactly("out", out, extent(shifts), extent(features, 1)));
}

template <class Real>
void quadratic_sums(const Matrix<const Real>& features, const Doubles& weights, const Cube<const Real>& triangles,
                    const Matrix<const Real>& shifts, const Vector<const Real>& constants, const Matrix<double>& sums,
                    const Vector<double>& totals, const Cube<double>& second, const Matrix<Real>& highest,
                    const Matrix<Real>& norms) {
    const Index p = extent(features), n = extent(features, 1), k = extent(shifts), d = extent(shifts, 1);
    if (extent(weights) > 0) exactly("weights", weights, n);
    require_size("highest", extent(highest), 1);
    const PosteriorSums<Real> out = posterior_arrays(k, p, n, sums, totals, highest, norms);
    quadratic<Real>().quadratic_sums(rows(features), span(weights), quadratic_of(features, triangles, shifts, constants),
                                     out, exactly("second", second, k, d, d));
}

// Blocks of the same samples with an origin each, which may be empty; features are those of one block after the other.
template <class From>
std::vector<RowBlock<From>> row_blocks(const std::vector<Lines<const From>>& blocks,
                                       const std::vector<Doubles>& origins, const std::vector<bool>& squares) {
    require(!blocks.empty() && origins.size() == blocks.size() && squares.size() == blocks.size(),
            "every block needs an origin, and a word on squares.");
    std::vector<RowBlock<From>> found;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        require_size("blocks", extent(blocks[b]), extent(blocks[0]));
        const Index d = extent(blocks[b], 1);
        if (extent(origins[b]) > 0) exactly("origins", origins[b], d);
        found.push_back({lines("blocks", blocks[b]), d, extent(origins[b]) > 0 ? origins[b].data() : nullptr, squares[b]});
    }
    return found;
}

template <class From>
void posterior_sums_of_rows(const std::vector<Lines<const From>>& blocks, const std::vector<Doubles>& origins,
                    const std::vector<bool>& squares, const Doubles& weights, const Table& coefficients,
                    const Doubles& offsets, const Matrix<double>& sums, const Vector<double>& totals,
                    const Matrix<double>& highest, const Matrix<double>& norms) {
    const std::vector<RowBlock<From>> made = row_blocks<From>(blocks, origins, squares);
    const Index n = extent(blocks[0]), k = extent(coefficients), groups = extent(highest);
    Index p = 0;
    for (const RowBlock<From>& block : made) p += block.d * (1 + block.squares);
    if (extent(weights) > 0) exactly("weights", weights, n);
    const PosteriorSums<double> out = posterior_arrays(k, p, n, sums, totals, highest, norms);
    row_posteriors<From>().posterior_sums_of_rows(
        {made.data(), Index(made.size())}, {0, n}, span(weights),
        {exactly("coefficients", coefficients, k, p), exactly("offsets", offsets, k), groups}, out);
}

template <class From>
void add_views(const std::vector<Lines<const From>>& blocks, const std::vector<Doubles>& origins,
               const Vector<const std::int32_t>& groups, const Doubles& directions, const Vector<const std::int64_t>& ranks,
               const Doubles& weights, const Vector<double>& first, const Vector<double>& projected,
               const Vector<double>& cross, const Vector<double>& pairs, const Vector<double>& triples) {
    const std::vector<RowBlock<From>> made = row_blocks<From>(blocks, origins, std::vector<bool>(blocks.size(), false));
    const Index n = extent(blocks[0]), n_views = Index(made.size());
    require_below("groups", exactly("groups", groups, n_views), n_views, 3);
    const std::int64_t* r = exactly("ranks", ranks, 3);
    for (int g = 0; g < 3; ++g) require(r[g] >= 0 && r[g] <= INT32_MAX, "ranks must be 0 or more.");
    Index p = 0, n_directions = 0, n_cross = 0;
    for (Index t = 0; t < n_views; ++t) {
        const Index d = made[t].d, own = r[groups.data()[t]];
        p += d;
        n_directions += d * own;
        n_cross += d * (r[0] + r[1] + r[2] - own);
    }
    if (extent(weights) > 0) exactly("weights", weights, n);
    const bool all = extent(triples) > 0;
    const ViewSums out{exactly("first", first, p), exactly("projected", projected, r[0] + r[1] + r[2]),
                       exactly("cross", cross, n_cross),
                       exactly("pairs", pairs, all ? r[0] * r[1] + r[0] * r[2] + r[1] * r[2] : 0),
                       all ? exactly("triples", triples, r[0] * r[1] * r[2]) : nullptr};
    views<From>().add_views({{made.data(), n_views}, groups.data(), exactly("directions", directions, n_directions),
                             {r[0], r[1], r[2]}, span(weights)}, {0, n}, out);
}

template <class Real> void bind(nb::module_& module) {
    define(module, "normalize", normalize<Real>);
    define(module, "posterior_sums", posterior_sums<Real>);
    define(module, "posterior_sums_of_rows", posterior_sums_of_rows<Real>);
    define(module, "quadratic_densities", quadratic_densities<Real>);
    define(module, "quadratic_sums", quadratic_sums<Real>);
    define(module, "add_views", add_views<Real>);
}

}  // namespace

void bind_mixtures(nb::module_& module) {
    bind<float>(module);
    bind<double>(module);
    define(module, "diagonal_rows", diagonal_rows);
    define(module, "diagonal_sums", diagonal_sums);
    define(module, "full_rows", full_rows);
    define(module, "full_sums", full_sums);
}

}  // namespace odeco
