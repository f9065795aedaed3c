// Words of texts as numbers: tokens, n-grams and counts per document. `odeco.kernels.tokens` says what the arrays hold.
//
// These loops follow pointers and hashes, which no vector unit helps with: they are compiled once. What they index with
// is checked where it is used, at the price of a comparison that is always predicted.
#pragma once

#include "views.hpp"

namespace odeco::tokens {

using Int32 = std::int32_t;
using Int64 = std::int64_t;
using UInt64 = std::uint64_t;

// Words and n-grams with their numbers: a hash table with open addressing.
struct Lexicon {
    Span<Int32> slots;
    Rows<Int64> entries;
    Span<UInt64> spelling;
    Span<Int64> used;
};

template <class Code> struct Text {
    Span<const Code> codes;
    Span<const Int64> ends;
    Span<const std::uint32_t> letter_of;
};

struct Spelled {
    Span<Int64> digests, lengths;
    Span<UInt64> spelling;
    Span<Int64> token_ends;
};

template <class Code> Index spell_tokens(const Text<Code>& text, const Spelled& out);
bool number_words(Span<const Int64> digests, Span<const Int64> lengths, Span<const UInt64> words, const Lexicon& lexicon,
                  bool frozen, Span<Int64> numbers, Span<Int64> state);
Index drop_stop_words(Span<Int64> numbers, Span<Int64> token_ends, Index n_stop);
bool join_grams(Span<const Int64> tokens, Span<const Int64> token_ends, Index least, Index most, const Lexicon& lexicon,
                bool frozen, Span<Int64> grams, Span<Int64> gram_ends, Span<Int64> state);
Index count_documents(Span<const Int64> tokens, Span<const Int64> token_ends, Index n_stop, Index n_before,
                      Rows<Int64> tally, Span<Int32> entries, Span<Int32> counts, Span<Int64> row_ends);
template <class Count>
Index sorted_rows(Span<const Int32> entries, Span<const Count> counts, Span<const Int64> row_ends,
                  Span<const Int32> column_of, Index n_columns, Span<Int32> columns, Span<Int64> values, Span<Int64> ends);
void add_grams(Span<const Int64> words, Span<const Int64> ends, const Lexicon& lexicon, Span<Int64> numbers);
void merge_grams(Rows<const Int64> other, const Lexicon& lexicon, Span<Int64> renamed);
void rehash(Rows<const Int64> entries, Index n, Span<Int32> slots);

}  // namespace odeco::tokens
