// Python's door to `step_features.cpp`.
#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Doubles = Vector<const double>;
using Table = Matrix<const double>;
using Flags = Vector<const std::uint8_t>;
using Places = Matrix<const std::int64_t>;

FeatureMap map_of(const Doubles& center, const Table& axes, const Table& knots, const Places& products) {
    const Index d = extent(center);
    const Rows<const std::int64_t> pairs = exactly("products", products, extent(products), 2);
    for (Index i = 0; i < 2 * pairs.n; ++i)
        if (pairs.data[i] < 0 || pairs.data[i] >= d) throw std::out_of_range("products must be of columns that there are.");
    return {center.data(), exactly("axes", axes, d, d), exactly("knots", knots, extent(knots), d), pairs};
}

Index feature_count(const FeatureMap& map) { return (6 + map.knots.n) * map.axes.n + map.products.n; }

LinkedSteps steps_of(const Table& values, const Flags& first, const Doubles& weights, Index n_own) {
    const Index n = extent(values);
    range_of(0, n_own, n);
    if (extent(weights) > 0) exactly("weights", weights, n);
    return {rows(values), exactly("first", first, n), span(weights), n_own};
}

void project_steps(const Table& values, const Doubles& center, const Table& axes, const Table& knots,
                   const Places& products, const Table& coefficients, const Doubles& offsets, const Matrix<double>& out) {
    const FeatureMap map = map_of(center, axes, knots, products);
    const Index n = extent(values), n_rows = extent(coefficients);
    exactly("values", values, n, extent(center));
    step_features().project_steps(rows(values), map, exactly("coefficients", coefficients, n_rows, feature_count(map)),
                                  exactly("offsets", offsets, n_rows), exactly("out", out, n_rows, n));
}

void add_step_pairs(const Table& values, const Flags& first, const Doubles& weights, Index n_own, const Doubles& center,
                    const Table& axes, const Table& knots, const Places& products, const Vector<double>& total,
                    const Matrix<double>& square, const Matrix<double>& lagged, const Vector<double>& added) {
    const FeatureMap map = map_of(center, axes, knots, products);
    const Index size = feature_count(map);
    exactly("values", values, extent(values), extent(center));
    const StepPairs out{exactly("total", total, size), exactly("added", added, 2), exactly("square", square, size, size),
                        exactly("lagged", lagged, size, size)};
    step_features().add_step_pairs(steps_of(values, first, weights, n_own), map, out);
}

void add_step_triples(const Table& values, const Flags& first, const Doubles& weights, Index n_own, const Table& z,
                      const Doubles& center, const Matrix<double>& pairs, const Cube<double>& triples,
                      const Vector<double>& begun, const Matrix<double>& seen, const Matrix<double>& sums,
                      const Cube<double>& seen_products, const Cube<double>& products, const Vector<double>& added) {
    const Index k = extent(z), d = extent(center), n = extent(values), width = extent(products, 2);
    exactly("values", values, n, d);
    exactly("z", z, k, n);
    require(width == 1 || width == d, "products must be squares, or products of all columns.");
    const StepTriples out{rows(z),
                          center.data(),
                          exactly("pairs", pairs, k, k).data,
                          exactly("triples", triples, k, k, k),
                          exactly("begun", begun, k),
                          exactly("added", added, 3),
                          exactly("seen", seen, 2 * k, d).data,
                          exactly("sums", sums, 2 * k, d).data,
                          exactly("seen_products", seen_products, 2 * k, d, width),
                          exactly("products", products, 2 * k, d, width),
                          width > 1};
    step_features().add_step_triples(steps_of(values, first, weights, n_own), out);
}

}  // namespace

void bind_step_features(nb::module_& module) {
    define(module, "project_steps", project_steps);
    define(module, "add_step_pairs", add_step_pairs);
    define(module, "add_step_triples", add_step_triples);
}

}  // namespace odeco
