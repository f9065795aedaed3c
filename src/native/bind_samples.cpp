// Python's door to moments and columns of samples: `columns.cpp`, `cubes.cpp`, `channels.cpp`, `cumulants.cpp`,
// `scores.cpp`, and plane rotations.
#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Doubles = Vector<const double>;
using Table = Matrix<const double>;
using Halves = Vector<const std::int8_t>;

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
    define(module, "smoothing_splines", smoothing_splines);
    define(module, "jacobi_sweep", jacobi_sweep);
}

}  // namespace odeco
