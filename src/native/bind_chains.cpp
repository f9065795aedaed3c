// Python's door to `forward_backward.cpp`, `viterbi.cpp` and the loops over symbols of `sequences.cpp`.
#include <nanobind/stl/pair.h>

#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Doubles = Vector<const double>;
using Table = Matrix<const double>;
using Ints = Vector<const std::int32_t>;
using Flags = Vector<const std::uint8_t>;

Steps steps_of(const Table& table, const Ints& index, const Flags& first, Index k) {
    const Index n = extent(index);
    require_size("the rows of likelihoods", extent(table, 1), k);
    require_below("index", index.data(), n, extent(table));
    return {rows(table), span(index), exactly("first", first, n), {nullptr, 0}};
}

Steps steps_of(const Table& table, const Ints& index, const Flags& first, const Doubles& weights, Index k) {
    Steps steps = steps_of(table, index, first, k);
    if (extent(weights) > 0) steps.weights = {exactly("weights", weights, extent(index)), extent(index)};
    return steps;
}

// A transition matrix (kp, k) for messages (kp, LANES).
Rows<const double> padded_matrix(const Table& matrix) {
    const Index kp = extent(matrix), k = extent(matrix, 1);
    require(k >= 1 && kp == (k + PAD - 1) / PAD * PAD, "a matrix of transitions must have its rows padded.");
    return rows(matrix);
}

Stretches stretches_of(Index begin, Index length, Index burn) {
    require(begin >= 0 && length >= 1 && burn >= 0, "begin, length and burn must not be negative.");
    return {begin, length, burn};
}

void forward(const Table& table, const Doubles& scales, const Ints& index, const Flags& first, const Doubles& weights,
             const Table& transposed, const Doubles& start, Index begin, Index length, Index burn,
             const Matrix<double>& message, const Cube<double>& alphas, const Matrix<double>& norms,
             const Vector<double>& log_likelihoods) {
    const Rows<const double> matrix = padded_matrix(transposed);
    const Index kp = matrix.n, k = matrix.width, n_kept = extent(alphas);
    const Steps steps = steps_of(table, index, first, weights, k);
    if (extent(scales) > 0) exactly("scales", scales, extent(table));
    require(n_kept == 1 || n_kept == length + 1, "alphas must have one row, or one more than there are steps.");
    exactly("message", message, kp, LANES);
    exactly("alphas", alphas, n_kept, kp, LANES);
    exactly("norms", norms, n_kept - 1, LANES);
    const ForwardSums out{message.data(), {alphas.data(), n_kept, kp * LANES}, norms.data(),
                          exactly("log_likelihoods", log_likelihoods, LANES)};
    chains().forward(steps, span(scales), matrix, exactly("start", start, k), stretches_of(begin, length, burn), out);
}

void backward(const Table& table, const Ints& index, const Flags& first, const Doubles& weights, const Table& transmat,
              Index begin, Index length, Index burn, const Matrix<double>& message, const Cube<const double>& alphas,
              const Matrix<const double>& norms, const Ints& target, const Matrix<double>& row_sums,
              const Vector<double>& start_sums, const Cube<double>& pair_sums, const Matrix<double>& used) {
    const Rows<const double> matrix = padded_matrix(transmat);
    const Index kp = matrix.n, k = matrix.width;
    const Steps steps = steps_of(table, index, first, weights, k);
    const std::int32_t* rows_of = exactly("target", target, extent(index));
    require_below("target", rows_of, extent(target), extent(row_sums));
    require_size("the rows of row_sums", extent(row_sums, 1), k);
    exactly("message", message, kp, LANES);
    exactly("norms", norms, length, LANES);
    exactly("used", used, kp, LANES);
    const BackwardSums out{message.data(), exactly("alphas", alphas, length + 1, kp, LANES), norms.data(), rows_of,
                           rows(row_sums), exactly("start_sums", start_sums, k),
                           exactly("pair_sums", pair_sums, kp, kp, LANES), used.data()};
    chains().backward(steps, matrix, stretches_of(begin, length, burn), out);
}

void advance(const Table& table, const Ints& index, const Flags& first, const Table& transmat, const Doubles& start,
             const Vector<double>& message) {
    const Index k = extent(message);
    chains().advance(steps_of(table, index, first, k), exactly("transmat", transmat, k, k), exactly("start", start, k),
                     message.data());
}

void retreat(const Table& table, const Ints& index, const Flags& first, const Table& transmat,
             const Vector<double>& message) {
    const Index k = extent(message);
    chains().retreat(steps_of(table, index, first, k), exactly("transmat", transmat, k, k), message.data());
}

template <class State>
double best_paths(const Table& table, const Ints& index, const Flags& first, const Table& log_transmat,
                  const Doubles& log_start, const Vector<double>& scores, const Matrix<State>& origins) {
    const Index k = extent(scores);
    const Steps steps = steps_of(table, index, first, k);
    require_size("the rows of origins", extent(origins, 1), k);
    if (extent(origins) > 0) require_at_least("origins", extent(origins), extent(index));
    const Rows<const double> matrix = exactly("log_transmat", log_transmat, k, k);
    const double* start = exactly("log_start", log_start, k);
    if constexpr (sizeof(State) == 1) return viterbi().best_paths8(steps, matrix, start, scores.data(), rows(origins));
    else return viterbi().best_paths32(steps, matrix, start, scores.data(), rows(origins));
}

template <class State> Index trace_back(const Matrix<const State>& origins, Index state, const Vector<std::int64_t>& path) {
    const Rows<const State> table = rows(origins);
    std::int64_t* out = exactly("path", path, table.n);
    for (Index t = table.n - 1; t >= 0; --t) {
        if (state < 0 || state >= table.width) throw std::out_of_range("a state of the path does not exist.");
        out[t] = state;
        state = table[t][state];
    }
    return state;
}

void best_scores(const Table& table, const Ints& index, const Flags& first, const Table& log_transposed,
                 const Doubles& log_start, Index begin, Index length, Index burn, const Matrix<double>& scores,
                 const Cube<double>& kept) {
    const Rows<const double> matrix = padded_matrix(log_transposed);
    const Index kp = matrix.n, k = matrix.width;
    exactly("scores", scores, kp, LANES);
    exactly("kept", kept, length + 1, kp, LANES);
    viterbi().best_scores(steps_of(table, index, first, k), matrix, exactly("log_start", log_start, k),
                          stretches_of(begin, length, burn), scores.data(), {kept.data(), length + 1, kp * LANES});
}

std::pair<Index, double> trace_lanes(const Table& table, const Ints& index, const Flags& first, const Table& log_transposed,
                                     const Doubles& log_start, Index begin, Index length, const Cube<const double>& kept,
                                     Index state, const Vector<std::int64_t>& path) {
    const Rows<const double> matrix = padded_matrix(log_transposed);
    const Index kp = matrix.n, k = matrix.width;
    exactly("kept", kept, length + 1, kp, LANES);
    exactly("path", path, extent(index));
    if (state < -1 || state >= k) throw std::out_of_range("the state after the path does not exist.");
    const Traced found = viterbi().trace_lanes(steps_of(table, index, first, k), matrix, exactly("log_start", log_start, k),
                                               stretches_of(begin, length, 0), {kept.data(), length + 1, kp * LANES}, state,
                                               span(path));
    return {found.state, found.value};
}

void add_triples(const Ints& before, const Ints& middle, const Ints& after, const Doubles& weights, const Table& basis,
                 const Cube<double>& core) {
    const Index n = extent(before), n_symbols = extent(basis), r = extent(basis, 1);
    exactly("middle", middle, n);
    exactly("after", after, n);
    for (const Ints* symbols : {&before, &middle, &after}) require_below("symbols", symbols->data(), n, n_symbols);
    if (extent(weights) > 0) exactly("weights", weights, n);
    sequences().add_triples(span(before), middle.data(), after.data(), span(weights), rows(basis),
                            exactly("core", core, r, r, r));
}

void products_at(const Ints& row, const Ints& column, const Table& left, const Table& right, const Vector<double>& out) {
    const Index n = extent(row);
    exactly("columns", column, n);
    require_below("rows", row.data(), n, extent(left));
    require_below("columns", column.data(), n, extent(right));
    require_size("the rows of right", extent(right, 1), extent(left, 1));
    sequences().products_at(span(row), column.data(), rows(left), rows(right), exactly("out", out, n));
}

void walk(const Table& levels, const Doubles& uniforms, Index state, const Vector<std::int64_t>& out) {
    exactly("levels", levels, extent(levels), extent(levels));
    if (state < 0 || state >= extent(levels)) throw std::out_of_range("the state before the chain does not exist.");
    exactly("uniforms", uniforms, extent(out));
    sequences().walk(rows(levels), uniforms.data(), state, span(out));
}

}  // namespace

void bind_chains(nb::module_& module) {
    define(module, "forward", forward);
    define(module, "backward", backward);
    define(module, "advance", advance);
    define(module, "retreat", retreat);
    define(module, "best_paths", best_paths<std::uint8_t>);
    define(module, "best_paths", best_paths<std::int32_t>);
    define(module, "trace_back", trace_back<std::uint8_t>);
    define(module, "trace_back", trace_back<std::int32_t>);
    define(module, "best_scores", best_scores);
    define(module, "trace_lanes", trace_lanes);
    define(module, "add_triples", add_triples);
    define(module, "products_at", products_at);
    define(module, "walk", walk);
    module.attr("LANES") = LANES;
    module.attr("PAD") = PAD;
}

}  // namespace odeco
