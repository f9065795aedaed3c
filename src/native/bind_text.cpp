// Python's door to `tokens.cpp` and `numbers.cpp`.
#include <nanobind/stl/tuple.h>

#include "arguments.hpp"
#include "numbers.hpp"
#include "tokens.hpp"

namespace odeco {
namespace {

using tokens::Int32;
using tokens::Int64;
using tokens::UInt64;
using Numbers = Vector<const Int64>;
using Arrays = std::tuple<Vector<Int32>, Matrix<Int64>, Vector<UInt64>>;

tokens::Lexicon lexicon_of(const Arrays& arrays, const Vector<Int64>& used) {
    const auto& [slots, entries, spelling] = arrays;
    const Index n = extent(slots);
    require(n > extent(entries) && (n & (n - 1)) == 0, "a lexicon needs a power of 2 of slots, more than entries.");
    require_size("the rows of entries", extent(entries, 1), 4);
    Int64* counts = exactly("used", used, 2);
    require(counts[0] >= 0 && counts[0] <= extent(entries) && counts[1] >= 0 && counts[1] <= extent(spelling),
            "a lexicon uses more than it has.");
    return {span(slots), rows(entries), span(spelling), span(used)};
}

template <class Code>
Index spell_tokens(const Vector<const Code>& text, const Numbers& ends, const Vector<const std::uint32_t>& letter_of,
                   const Vector<Int64>& digests, const Vector<Int64>& lengths, const Vector<UInt64>& spelling,
                   const Vector<Int64>& token_ends) {
    const Index most = extent(text) / 2 + 1;
    require_ends("ends", ends.data(), extent(ends), extent(text));
    if constexpr (sizeof(Code) == 1) require_at_least("letter_of", extent(letter_of), 256);  // others: as they are read
    require_at_least("digests", extent(digests), most);
    require_at_least("lengths", extent(lengths), most);
    require_at_least("spelling", extent(spelling), most);
    require_at_least("token_ends", extent(token_ends), extent(ends));
    return tokens::spell_tokens<Code>({span(text), span(ends), span(letter_of)},
                                      {span(digests), span(lengths), span(spelling), span(token_ends)});
}

bool number_words(const Numbers& digests, const Numbers& lengths, const Vector<const UInt64>& words, const Arrays& arrays,
                  const Vector<Int64>& used, bool frozen, const Vector<Int64>& numbers, const Vector<Int64>& state) {
    const Index n = extent(digests);
    exactly("lengths", lengths, n);
    exactly("numbers", numbers, n);
    const Int64* at = exactly("state", state, 2);
    require(at[0] >= 0 && at[1] >= 0, "a state must not be negative.");
    return tokens::number_words(span(digests), span(lengths), span(words), lexicon_of(arrays, used), frozen, span(numbers),
                                span(state));
}

Index drop_stop_words(const Vector<Int64>& numbers, const Vector<Int64>& token_ends, Index n_stop) {
    require_ends("token_ends", token_ends.data(), extent(token_ends), extent(numbers));
    return tokens::drop_stop_words(span(numbers), span(token_ends), n_stop);
}

bool join_grams(const Numbers& words, const Numbers& token_ends, Index least, Index most, const Arrays& arrays,
                const Vector<Int64>& used, bool frozen, const Vector<Int64>& grams, const Vector<Int64>& gram_ends,
                const Vector<Int64>& state) {
    require(1 <= least && least <= most, "n-grams need 1 <= least <= most.");
    require_ends("token_ends", token_ends.data(), extent(token_ends), extent(words));
    exactly("gram_ends", gram_ends, extent(token_ends));
    const Int64* at = exactly("state", state, 3);
    require(at[0] >= 0 && at[1] >= 0 && at[2] >= 0, "a state must not be negative.");
    return tokens::join_grams(span(words), span(token_ends), least, most, lexicon_of(arrays, used), frozen, span(grams),
                              span(gram_ends), span(state));
}

Index count_documents(const Numbers& words, const Numbers& token_ends, Index n_stop, Index n_before,
                      const Matrix<Int64>& tally, const Vector<Int32>& entries, const Vector<Int32>& counts,
                      const Vector<Int64>& row_ends) {
    require(n_stop >= 0, "n_stop must not be negative.");
    require_ends("token_ends", token_ends.data(), extent(token_ends), extent(words));
    require_size("the rows of tally", extent(tally, 1), 4);
    require_at_least("entries", extent(entries), extent(words));
    require_at_least("counts", extent(counts), extent(words));
    exactly("row_ends", row_ends, extent(token_ends));
    return tokens::count_documents(span(words), span(token_ends), n_stop, n_before, rows(tally), span(entries),
                                   span(counts), span(row_ends));
}

template <class Count>
Index sorted_rows(const Vector<const Int32>& entries, const Vector<const Count>& counts, const Numbers& row_ends,
                  const Vector<const Int32>& column_of, Index n_columns, const Vector<Int32>& columns,
                  const Vector<Int64>& values, const Vector<Int64>& ends) {
    const Index n = extent(entries);
    require_ends("row_ends", row_ends.data(), extent(row_ends), n);
    require_below("entries", entries.data(), n, extent(column_of));
    for (Index i = 0; i < extent(column_of); ++i)
        if (column_of.data()[i] >= n_columns) throw std::out_of_range("an entry has a column that there is not.");
    exactly("counts", counts, n);
    require_at_least("columns", extent(columns), n);
    require_at_least("values", extent(values), n);
    exactly("ends", ends, extent(row_ends));
    return tokens::sorted_rows<Count>(span(entries), span(counts), span(row_ends), span(column_of), n_columns,
                                      span(columns), span(values), span(ends));
}

void add_grams(const Numbers& words, const Numbers& ends, const Arrays& arrays, const Vector<Int64>& used,
               const Vector<Int64>& numbers) {
    require_ends("ends", ends.data(), extent(ends), extent(words));
    exactly("numbers", numbers, extent(ends));
    tokens::add_grams(span(words), span(ends), lexicon_of(arrays, used), span(numbers));
}

void merge_grams(const Matrix<const Int64>& other, const Arrays& arrays, const Vector<Int64>& used,
                 const Vector<Int64>& renamed) {
    require_size("the rows of other", extent(other, 1), 4);
    exactly("renamed", renamed, extent(other));
    tokens::merge_grams(rows(other), lexicon_of(arrays, used), span(renamed));
}

void rehash(const Matrix<const Int64>& entries, Index n, const Vector<Int32>& slots) {
    const Index size = extent(slots);
    require(size > n && (size & (size - 1)) == 0, "a table needs a power of 2 of slots, more than entries.");
    require(n >= 0 && n <= extent(entries) && extent(entries, 1) == 4, "there are not so many entries.");
    tokens::rehash(rows(entries), n, span(slots));
}

using Bytes = Vector<std::uint8_t>;

template <class Place>
std::tuple<Index, Index, Index> read_numbers(const Vector<const std::uint8_t>& text, const Vector<Int64>& whole,
                                             const Vector<double>& decimal, const Bytes& kinds, const Bytes& after,
                                             const Vector<Place>& begins, const Bytes& long_decimals) {
    const Index size = extent(text), most = extent(kinds);
    require(size == 0 || text.data()[size - 1] == '\n', "the text must end in a newline.");
    exactly("whole", whole, most);
    exactly("decimal", decimal, most);
    exactly("after", after, most);
    exactly("begins", begins, most);
    require_at_least("long_decimals", extent(long_decimals), size);
    const auto ends = numbers::read_numbers<Place>(
        span(text), {span(whole), span(decimal), span(kinds), span(after), span(begins), span(long_decimals)});
    return {ends.n, ends.fault, ends.n_long};
}

}  // namespace

void bind_text(nb::module_& module) {
    define(module, "spell_tokens", spell_tokens<std::uint8_t>);
    define(module, "spell_tokens", spell_tokens<std::uint32_t>);
    define(module, "number_words", number_words);
    define(module, "drop_stop_words", drop_stop_words);
    define(module, "join_grams", join_grams);
    define(module, "count_documents", count_documents);
    define(module, "sorted_rows", sorted_rows<std::uint8_t>);
    define(module, "sorted_rows", sorted_rows<Int32>);
    define(module, "add_grams", add_grams);
    define(module, "merge_grams", merge_grams);
    define(module, "rehash", rehash);
    define(module, "read_numbers", read_numbers<Int32>);
    define(module, "read_numbers", read_numbers<Int64>);
}

}  // namespace odeco
