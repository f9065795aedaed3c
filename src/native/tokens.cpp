#include "tokens.hpp"

#include <stdexcept>
#include <vector>

namespace odeco::tokens {
namespace {

constexpr UInt64 SEED = 0xCBF29CE484222325, FACTOR = 0x9E3779B97F4A7C15, MIX = 0xFF51AFD7ED558CCD;
constexpr int LETTER = 21;  // bits

void require(bool truth, const char* what) {
    if (!truth) [[unlikely]] throw std::out_of_range(what);
}

// The hash with low bits that depend on all others (slots are chosen by them): the last step of MurmurHash.
Int64 mixed(UInt64 key) {
    key = (key ^ (key >> 32)) * MIX;
    return Int64(key ^ (key >> 32));
}

// Where a search in the table begins, and how it goes on.
struct Probe {
    UInt64 mask, slot;
    Probe(const Lexicon& lexicon, Int64 digest) : mask(UInt64(lexicon.slots.size) - 1), slot(UInt64(digest) & mask) {}
    void next() { slot = (slot + 1) & mask; }
};

// The number in a slot, -1 where it is free.
Int64 entry_at(const Lexicon& lexicon, const Probe& probe) {
    const Int64 entry = lexicon.slots[Index(probe.slot)];
    require(entry < lexicon.used[0], "the lexicon's table holds a number that no entry has");
    return entry;
}

Int64 add(const Lexicon& lexicon, const Probe& probe, Int64 digest, Int64 n, Int64 first, Int64 second) {
    const Int64 entry = lexicon.used[0];
    require(entry < lexicon.entries.n, "the lexicon has no room for an entry");
    lexicon.slots[Index(probe.slot)] = Int32(entry);
    Int64* row = lexicon.entries[entry];
    row[0] = digest, row[1] = n, row[2] = first, row[3] = second;
    ++lexicon.used[0];
    return entry;
}

bool is_word(const Lexicon& lexicon, Int64 entry, Int64 digest, Int64 length, const UInt64* letters, Index size) {
    const Int64* row = lexicon.entries[entry];
    if (row[0] != digest || row[1] != 1 || row[3] != length) return false;
    require(row[2] >= 0 && row[2] + size <= lexicon.spelling.size, "an entry is spelled outside of the lexicon");
    for (Index i = 0; i < size; ++i)
        if (lexicon.spelling[row[2] + i] != letters[i]) return false;
    return true;
}

// The number of an n-gram of a shorter one and a word; -1 where it is unknown to a frozen lexicon.
Int64 gram(const Lexicon& lexicon, Int64 prefix, Int64 word, Int64 n, bool frozen) {
    if (prefix < 0 || word < 0) return -1;
    const Int64 key = mixed((UInt64(mixed(SEED ^ UInt64(prefix))) * FACTOR) ^ UInt64(word));
    Probe probe(lexicon, key);
    for (Int64 entry; (entry = entry_at(lexicon, probe)) >= 0; probe.next()) {
        const Int64* row = lexicon.entries[entry];
        if (row[0] == key && row[1] == n && row[2] == prefix && row[3] == word) return entry;
    }
    return frozen ? -1 : add(lexicon, probe, key, n, prefix, word);
}

// Three letters in a number, hashed as they come.
struct Speller {
    UInt64* spelling;
    UInt64 three = 0, key = SEED;
    int filled = 0;
    void add(std::uint32_t letter) {
        three = (three << LETTER) | letter;
        if (++filled == 3) flush();
    }
    void flush() {
        *spelling++ = three;
        key = (key ^ three) * FACTOR;
        three = 0, filled = 0;
    }
};

}  // namespace

template <class Code> Index spell_tokens(const Text<Code>& text, const Spelled& out) {
    Index n = 0, at = 0;
    UInt64* place = out.spelling.data;
    for (Index document = 0; document < text.ends.size; ++document) {
        const Index end = text.ends[document];
        while (at < end) {
            const Index begin = at;
            Speller word{place};
            for (; at < end; ++at) {
                const Code code = text.codes[at];
                if constexpr (sizeof(Code) > 1) require(code < text.letter_of.size, "a code point has no letter");
                const std::uint32_t letter = text.letter_of[code];
                if (letter == 0) break;
                word.add(letter);
            }
            const Index length = at++ - begin;
            if (length < 2) continue;
            if (word.filled) word.flush();
            out.digests[n] = mixed(word.key);
            out.lengths[n++] = length;
            place = word.spelling;
        }
        out.token_ends[document] = n;
        at = end;
    }
    return n;
}
template Index spell_tokens(const Text<std::uint8_t>&, const Spelled&);
template Index spell_tokens(const Text<std::uint32_t>&, const Spelled&);

bool number_words(Span<const Int64> digests, Span<const Int64> lengths, Span<const UInt64> words, const Lexicon& lexicon,
                  bool frozen, Span<Int64> numbers, Span<Int64> state) {
    Index begin = state[1];
    for (Index w = state[0]; w < digests.size; ++w) {
        const Int64 digest = digests[w], length = lengths[w], size = (length + 2) / 3;
        require(length >= 0 && begin + size <= words.size, "a word is spelled outside of the given spelling");
        const UInt64* letters = words.data + begin;
        Probe probe(lexicon, digest);
        Int64 entry;
        while ((entry = entry_at(lexicon, probe)) >= 0 && !is_word(lexicon, entry, digest, length, letters, size))
            probe.next();
        if (entry < 0 && !frozen) {
            Int64& end = lexicon.used[1];
            if (lexicon.used[0] >= lexicon.entries.n || end + size > lexicon.spelling.size) {
                state[0] = w, state[1] = begin;
                return false;
            }
            for (Index i = 0; i < size; ++i) lexicon.spelling[end + i] = letters[i];
            entry = add(lexicon, probe, digest, 1, end, length);
            end += size;
        }
        numbers[w] = entry;
        begin += size;
    }
    return true;
}

Index drop_stop_words(Span<Int64> numbers, Span<Int64> token_ends, Index n_stop) {
    Index n = 0, start = 0;
    for (Index document = 0; document < token_ends.size; ++document) {
        const Index end = token_ends[document];
        for (Index at = start; at < end; ++at)
            if (numbers[at] < 0 || numbers[at] >= n_stop) numbers[n++] = numbers[at];
        start = end;
        token_ends[document] = n;
    }
    return n;
}

bool join_grams(Span<const Int64> tokens, Span<const Int64> token_ends, Index least, Index most, const Lexicon& lexicon,
                bool frozen, Span<Int64> grams, Span<Int64> gram_ends, Span<Int64> state) {
    Index at = state[1], n_grams = state[2];
    for (Index document = state[0]; document < token_ends.size; ++document) {
        const Index end = token_ends[document];
        for (; at < end; ++at) {
            if (!frozen && lexicon.used[0] + most > lexicon.entries.n) {
                state[0] = document, state[1] = at, state[2] = n_grams;
                return false;
            }
            require(n_grams + (most - least + 1) <= grams.size, "there is no room for the n-grams");
            Int64 entry = tokens[at];
            for (Index n = 1; n <= smaller(most, end - at); ++n) {
                if (n > 1) entry = gram(lexicon, entry, tokens[at + n - 1], n, frozen);
                if (n >= least) grams[n_grams++] = entry;
            }
        }
        gram_ends[document] = n_grams;
    }
    state[2] = n_grams;
    return true;
}

Index count_documents(Span<const Int64> tokens, Span<const Int64> token_ends, Index n_stop, Index n_before,
                      Rows<Int64> tally, Span<Int32> entries, Span<Int32> counts, Span<Int64> row_ends) {
    Index size = 0, start = 0;
    for (Index document = 0; document < token_ends.size; ++document) {
        const Int64 stamp = n_before + document + 1;
        for (Index at = start; at < token_ends[document]; ++at) {
            const Int64 entry = tokens[at];
            if (entry < n_stop) continue;  // unknown words, too
            require(entry < tally.n, "a token has a number that the tally does not have");
            Int64* mine = tally[entry];
            if (mine[0] != stamp) {
                mine[0] = stamp, mine[1] = size;
                ++mine[2];
                entries[size] = Int32(entry), counts[size++] = 0;
            }
            require(mine[1] >= 0 && mine[1] < size, "the tally has seen a later document");
            ++counts[mine[1]];
            ++mine[3];
        }
        start = token_ends[document];
        row_ends[document] = size;
    }
    return size;
}

// Put in the order of the columns by counting, and from there back into rows: no row is sorted.
template <class Count>
Index sorted_rows(Span<const Int32> entries, Span<const Count> counts, Span<const Int64> row_ends,
                  Span<const Int32> column_of, Index n_columns, Span<Int32> columns, Span<Int64> values, Span<Int64> ends) {
    std::vector<Int64> starts(n_columns + 1);
    std::vector<Int32> row_of(entries.size);
    Index size = 0, start = 0;
    for (Index row = 0; row < row_ends.size; ++row) {
        ends[row] = size;  // for now, where the row begins
        for (Index at = start; at < row_ends[row]; ++at) {
            row_of[at] = Int32(row);
            const Int32 column = column_of[entries[at]];
            if (column >= 0) ++starts[column + 1], ++size;
        }
        start = row_ends[row];
    }
    for (Index column = 0; column < n_columns; ++column) starts[column + 1] += starts[column];
    std::vector<Int64> by_column(size);
    for (Index at = 0; at < start; ++at) {
        const Int32 column = column_of[entries[at]];
        if (column >= 0) by_column[starts[column]++] = at;
    }
    for (Index at : by_column) {
        Int64& end = ends[row_of[at]];
        columns[end] = column_of[entries[at]];
        values[end++] = counts[at];
    }
    return size;
}
template Index sorted_rows(Span<const Int32>, Span<const std::uint8_t>, Span<const Int64>, Span<const Int32>, Index,
                           Span<Int32>, Span<Int64>, Span<Int64>);
template Index sorted_rows(Span<const Int32>, Span<const Int32>, Span<const Int64>, Span<const Int32>, Index, Span<Int32>,
                           Span<Int64>, Span<Int64>);

void add_grams(Span<const Int64> words, Span<const Int64> ends, const Lexicon& lexicon, Span<Int64> numbers) {
    Index start = 0;
    for (Index g = 0; g < ends.size; ++g) {
        require(start < ends[g], "an n-gram has no words");
        Int64 entry = words[start];
        for (Index n = 2; n <= ends[g] - start; ++n) entry = gram(lexicon, entry, words[start + n - 1], n, false);
        numbers[g] = entry;
        start = ends[g];
    }
}

void merge_grams(Rows<const Int64> other, const Lexicon& lexicon, Span<Int64> renamed) {
    for (Index entry = 0; entry < other.n; ++entry) {
        const Int64 n = other[entry][1], prefix = other[entry][2], word = other[entry][3];
        if (n <= 1) continue;
        require(prefix >= 0 && prefix < other.n && word >= 0 && word < other.n, "an n-gram is made of no entries");
        renamed[entry] = gram(lexicon, renamed[prefix], renamed[word], n, false);
    }
}

void rehash(Rows<const Int64> entries, Index n, Span<Int32> slots) {
    const UInt64 mask = UInt64(slots.size) - 1;
    for (Index entry = 0; entry < n; ++entry) {
        UInt64 slot = UInt64(entries[entry][0]) & mask;
        while (slots[Index(slot)] >= 0) slot = (slot + 1) & mask;
        slots[Index(slot)] = Int32(entry);
    }
}

}  // namespace odeco::tokens
