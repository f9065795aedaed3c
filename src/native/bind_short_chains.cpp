// Python's door to `short_chains.cpp`.
#include "arguments.hpp"
#include "dispatch.hpp"

namespace odeco {
namespace {

using Doubles = Vector<const double>;
using Table = Matrix<const double>;
using Ints = Vector<const std::int32_t>;
using Flags = Vector<const std::uint8_t>;

// Steps whose index lies below m; the first of them begins a sequence.
Steps steps_of(Rows<const double> table, const Ints& index, const Flags& first, const Doubles& weights, Index m) {
    const Index n = extent(index);
    require_at_least("index", n, 1);
    require_below("index", index.data(), n, m);
    Steps steps{table, span(index), exactly("first", first, n), {nullptr, 0}};
    require(steps.first[0] == 1, "the first step must begin a sequence.");
    if (extent(weights) > 0) steps.weights = {exactly("weights", weights, n), n};
    return steps;
}

double expect_short(const Table& table, const Doubles& scales, const Ints& index, const Flags& first,
                    const Doubles& weights, const Table& transmat, const Doubles& start, const Matrix<double>& row_sums,
                    const Vector<double>& start_sums, const Matrix<double>& transitions) {
    const Index k = extent(start), m = extent(table);
    require_at_least("start", k, 1);
    const Steps steps = steps_of(exactly("the rows of likelihoods", table, m, k), index, first, weights, m);
    if (extent(scales) > 0) exactly("scales", scales, m);
    const ChainSums out{exactly("row_sums", row_sums, m, k), exactly("start_sums", start_sums, k),
                        exactly("transitions", transitions, k, k).data};
    return short_chains().expect_short(steps, span(scales), exactly("transmat", transmat, k, k), start.data(), out);
}

ShortClimb climb_of(Index k, double start, double transitions, double total, double tol, Index patience) {
    require(k >= 1 && total > 0 && patience >= 1, "k, total and patience must be above 0.");
    return {k, {start, transitions}, total, {tol, patience}};
}

Index climb_symbols(const Ints& index, const Flags& first, const Doubles& weights, Index k, Index n_symbols,
                    double start, double transitions, double emissions, double total, double tol, Index patience,
                    const Vector<double>& state, const Vector<double>& seen) {
    const ShortClimb given = climb_of(k, start, transitions, total, tol, patience);
    require(n_symbols >= 1 && n_symbols < INT32_MAX, "n_symbols must be above 0, and below 2**31 - 1.");
    const Steps steps = steps_of({nullptr, 0, k}, index, first, weights, n_symbols + 1);
    return short_chains().climb_symbols(steps, given, n_symbols, emissions,
                                        exactly("state", state, k + k * k + k * n_symbols), span(seen));
}

Index climb_counts(const Ints& index, const Flags& first, const Doubles& weights, Index k, const Table& values,
                   const Doubles& base, double start, double transitions, double floor, double total, double tol,
                   Index patience, const Vector<double>& state, const Vector<double>& seen) {
    const ShortClimb given = climb_of(k, start, transitions, total, tol, patience);
    const Index m = extent(values), d = extent(values, 1);
    require(floor > 0, "floor must be above 0.");
    const Steps steps = steps_of({nullptr, 0, k}, index, first, weights, m);
    return short_chains().climb_counts(steps, given, rows(values), exactly("base", base, m), floor,
                                       exactly("state", state, k + k * k + k * d), span(seen));
}

}  // namespace

void bind_short_chains(nb::module_& module) {
    define(module, "expect_short", expect_short);
    define(module, "climb_symbols", climb_symbols);
    define(module, "climb_counts", climb_counts);
}

}  // namespace odeco
