// Python's door to the loops over samples: `gaussian.cpp`, `mixtures.cpp`, `posteriors.cpp`, `scores.cpp`,
// `view_moments.cpp`, `channels.cpp`, `columns.cpp`, `cubes.cpp`, `cumulants.cpp`, and plane rotations.
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Doubles = Vector<const double>;
using Table = Matrix<const double>;
using Halves = Vector<const std::int8_t>;

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

// The cells of both halves of the samples lie after one another.
Grid grid_of(double low, double step, Index both) {
    require(both % 2 == 0 && both >= 4 && step > 0, "a grid needs two cells or more for each half, and a step above 0.");
    return {low, step, both / 2};
}

template <class Real>
ScoredSamples<Real> scored(const Matrix<const Real>& samples, const Matrix<const Real>& turn, const Doubles& weights,
                           const Halves& halves) {
    const Index n = extent(samples, 1);
    if (extent(weights) > 0) exactly("weights", weights, n);
    require_at_least("turn", extent(turn), 1);
    return {rows(samples), exactly("turn", turn, extent(turn), extent(samples)), span(weights), exactly("halves", halves, n)};
}

template <class Real>
void add_counts(const Matrix<const Real>& samples, Index start, Index stop, const Matrix<const Real>& turn,
                const Doubles& weights, const Halves& halves, double low, double step, const Cube<double>& counts) {
    const Grid grid = grid_of(low, step, extent(counts, 1));
    scores<Real>().add_counts(scored(samples, turn, weights, halves), range_of(start, stop, extent(samples, 1)), grid,
                              exactly("counts", counts, extent(turn), 2 * grid.n_cells, 2));
}

template <class Real>
void add_score_products(const Matrix<const Real>& samples, Index start, Index stop, const Matrix<const Real>& turn,
                        const Doubles& weights, const Halves& halves, double low, double step,
                        const Matrix<const float>& tables, const Matrix<double>& out) {
    const Index k = extent(turn);
    const Grid grid = grid_of(low, step, extent(tables, 1));
    scores<Real>().add_score_products(scored(samples, turn, weights, halves), range_of(start, stop, extent(samples, 1)),
                                      grid, exactly("tables", tables, k, 2 * grid.n_cells).data,
                                      exactly("out", out, k + 1, 2 * k + 1));
}

template <class From, class Real>
void centred_columns(const Lines<const From>& values, Index start, Index stop, const Vector<const From>& origin,
                     const Matrix<Real>& out) {
    const Index d = extent(values, 1);
    const Range range = range_of(start, stop, extent(values));
    if (extent(origin) > 0) exactly("origin", origin, d);
    columns<From, Real>().centred_columns(lines("rows", values), d, range, extent(origin) > 0 ? origin.data() : nullptr,
                                          exactly("out", out, d, stop - start));
}

template <class Real>
void add_cubes(const Lines<const Real>& first, const Lines<const Real>& second, const Lines<const Real>& third,
               const Doubles& weights, const Cube<double>& sums) {
    const Index n = extent(first), k1 = extent(sums), k2 = extent(sums, 1), k3 = extent(sums, 2);
    const auto block = [&](const char* name, const Lines<const Real>& samples, Index k) {
        require_size(name, extent(samples), n);
        require_at_least(name, extent(samples, 1), k);
        return lines(name, samples);
    };
    const CubeSamples<Real> of{block("first", first, k1), block("second", second, k2), block("third", third, k3),
                               {k1, k2, k3}, span(weights)};
    if (extent(weights) > 0) exactly("weights", weights, n);
    if (n == 0 || k1 == 0 || k2 == 0 || k3 == 0) return;
    require(of.first.data != of.second.data || (k1 == k2 && of.first.width == of.second.width),
            "the first two blocks begin together but differ.");
    require(of.second.data != of.third.data || (k2 == k3 && of.second.width == of.third.width),
            "the last two blocks begin together but differ.");
    cubes<Real>().add_cubes(of, sums.data());
}

template <class Real>
void add_row_products(const Matrix<const Real>& given, const Doubles& origin, const Doubles& weights,
                      const Matrix<double>& out) {
    const Index d = extent(given, 1);
    if (extent(weights) > 0) exactly("weights", weights, extent(given));
    channels<Real>().add_row_products(rows(given), exactly("origin", origin, d), span(weights),
                                      exactly("out", out, d + 1, d + 1));
}

template <class Given, class Real>
void whiten_rows(const Matrix<const Given>& given, const Vector<const Given>& origin, const Matrix<const Real>& turn,
                  Index start, const Matrix<Real>& out) {
    const Index d = extent(given, 1), r = extent(turn);
    range_of(start, start, extent(out, 1));  // first: a sum with any other could overflow
    range_of(start, start + extent(given), extent(out, 1));
    require_at_least("turn", r, 1);
    const Rows<const Given> taken = rows(given);
    const Rows<const Real> through = exactly("turn", turn, r, d);
    const Rows<Real> to = exactly("out", out, r, extent(out, 1));
    if constexpr (sizeof(Real) == 4) channels<Given>().whiten_rows(taken, exactly("origin", origin, d), through, start, to);
    else channels<Given>().whiten_rows_double(taken, exactly("origin", origin, d), through, start, to);
}

template <class Real>
void add_second(const Matrix<const Real>& samples, Index start, Index stop, const Doubles& weights,
                const Matrix<double>& second) {
    const Index r = extent(samples);
    const Range range = range_of(start, stop, extent(samples, 1));
    if (extent(weights) > 0) exactly("weights", weights, extent(samples, 1));
    cumulants<Real>().add_second(rows(samples), range, span(weights), exactly("second", second, r, r));
}

template <class Real>
void add_fourth(const Matrix<const Real>& samples, Index start, Index stop, const Doubles& weights,
                const Matrix<double>& second, const Matrix<double>& fourth) {
    const Index r = extent(samples), n_pairs = r * (r + 1) / 2;
    const Range range = range_of(start, stop, extent(samples, 1));
    if (extent(weights) > 0) exactly("weights", weights, extent(samples, 1));
    cumulants<Real>().add_fourth(rows(samples), range, span(weights), exactly("second", second, r, r).data,
                                 exactly("fourth", fourth, n_pairs, n_pairs).data);
}

void smoothing_splines(const Table& masses, const Table& right, const Doubles& penalties, const Cube<double>& out) {
    const Index k = extent(masses), m = extent(masses, 1);
    splines().smoothing_splines(rows(masses), exactly("right", right, k, m).data, span(penalties),
                                exactly("out", out, extent(penalties), k, m));
}

double jacobi_sweep(const Cube<double>& stack, const Matrix<double>& frame) {
    const Index n = extent(stack), m = extent(stack, 2);
    return sequences().jacobi_sweep(exactly("stack", stack, n, n, m), exactly("frame", frame, n, n).data, n, m);
}

template <class Real> void bind(nb::module_& module) {
    define(module, "normalize", normalize<Real>);
    define(module, "posterior_sums", posterior_sums<Real>);
    define(module, "posterior_sums_of_rows", posterior_sums_of_rows<Real>);
    define(module, "add_views", add_views<Real>);
    define(module, "add_counts", add_counts<Real>);
    define(module, "add_score_products", add_score_products<Real>);
    define(module, "centred_columns", centred_columns<Real, Real>);
    define(module, "add_cubes", add_cubes<Real>);
    define(module, "add_row_products", add_row_products<Real>);
    define(module, "whiten_rows", whiten_rows<Real, float>);
    define(module, "whiten_rows", whiten_rows<Real, double>);
    define(module, "add_second", add_second<Real>);
    define(module, "add_fourth", add_fourth<Real>);
}

}  // namespace

void bind_samples(nb::module_& module) {
    bind<float>(module);
    bind<double>(module);
    define(module, "centred_columns", centred_columns<double, float>);
    define(module, "diagonal_rows", diagonal_rows);
    define(module, "diagonal_sums", diagonal_sums);
    define(module, "full_rows", full_rows);
    define(module, "full_sums", full_sums);
    define(module, "smoothing_splines", smoothing_splines);
    define(module, "jacobi_sweep", jacobi_sweep);
}

}  // namespace odeco
