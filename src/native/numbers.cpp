// A number is digits with a sign, a point and an exponent, or without them. Most are read here and exactly: whole numbers
// of up to 18 digits, and decimals whose digits and power of ten are both exact in double precision, so that one rounded
// operation gives the nearest double (Clinger, 1990). Longer decimals are copied; words are left where they are.
//
// The text ends in a newline, which no number holds: loops that look for the end of one need no other bound.
#include "numbers.hpp"

#include <algorithm>
#include <cstdlib>

namespace odeco::numbers {
namespace {

using UInt64 = std::uint64_t;

enum Kind : Byte { WHOLE, DECIMAL, LONG, WORD };
enum After : Byte { BLANK, COLON, END };

constexpr Index MOST_DIGITS = 18;  // of a whole number that fits 64 bits for certain
constexpr UInt64 EXACT = UInt64(1) << 53;
constexpr Index N_POWERS = 23;  // 5^22 < 2^53
constexpr double POWERS[N_POWERS] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool is_blank(Byte symbol) { return symbol == ' ' || (symbol >= '\t' && symbol <= '\r'); }

bool ends(Byte symbol) { return symbol == ':' || is_blank(symbol); }

struct Digits {
    Index end;
    UInt64 number;  // wrong where the digits are more than 18
};

Digits read_digits(const Byte* text, Index at, UInt64 number) {
    for (; text[at] >= '0' && text[at] <= '9'; ++at) number = 10 * number + (text[at] - '0');
    return {at, number};
}

struct Read {
    Kind kind;
    Index end;
    double value;
};

// The kind of what begins there, its digits read up to the point; where it ends, and its value if it is decimal.
Read read_decimal(const Byte* text, Index begin, Digits digits) {
    const Index point = digits.end;
    if (text[point] == '.') digits = read_digits(text, point + 1, digits.number);
    Index end = digits.end;
    const Index n_after = std::max<Index>(end - point - 1, 0);
    Index n_digits = point - begin + n_after, power = -n_after;
    if ((text[end] | 32) == 'e') {
        const Byte sign = text[end + 1];
        const Index first = end + 1 + (sign == '+' || sign == '-');
        const Digits exponent = read_digits(text, first, 0);
        end = exponent.end;
        if (end == first) n_digits = 0;
        if (end - first > 3) power = N_POWERS;  // more than any double has
        else power += (sign == '-' ? -1 : 1) * Index(exponent.number);
    }
    if (n_digits > 0 && end > point && ends(text[end])) {
        if (n_digits > MOST_DIGITS || digits.number > EXACT || std::abs(power) >= N_POWERS) return {LONG, end, 0};
        const double whole = double(digits.number);
        return {DECIMAL, end, power >= 0 ? whole * POWERS[power] : whole / POWERS[-power]};
    }
    while (!ends(text[end])) ++end;
    return {WORD, end, 0};
}

}  // namespace

template <class Place> Ends read_numbers(Span<const Byte> given, const Found<Place>& found) {
    const Byte* text = given.data;
    Index n = 0, n_long = 0, at = 0;
    while (at < given.size) {
        const Byte symbol = text[at];
        if (is_blank(symbol)) {
            if (symbol == '\n' && n > 0) found.after[n - 1] = END;
            ++at;
            continue;
        }
        const bool negative = symbol == '-';
        const Index begin = negative || symbol == '+' ? at + 1 : at;
        const Digits digits = read_digits(text, begin, 0);
        Read read{WHOLE, digits.end, 0};
        if (n == found.kinds.size) return {n, at, n_long};  // more numbers than any such text has
        if (digits.end > begin && digits.end - begin <= MOST_DIGITS && ends(text[digits.end])) {
            const auto number = std::int64_t(digits.number);
            found.whole[n] = negative ? -number : number;
        } else {
            read = read_decimal(text, begin, digits);
            if (read.kind == DECIMAL) found.decimal[n] = negative ? -read.value : read.value;
            if (read.kind == WORD) found.whole[n] = read.end;
            if (read.kind == LONG) {
                std::copy(text + at, text + read.end, found.long_decimals.data + n_long);
                n_long += read.end - at;
                found.long_decimals[n_long++] = '\n';
            }
        }
        const bool joined = text[read.end] == ':';
        if (read.end == at || (joined && is_blank(text[read.end + 1]))) return {n, at, n_long};
        found.begins[n] = Place(at);
        found.kinds[n] = read.kind;
        found.after[n] = joined ? COLON : BLANK;
        at = joined ? read.end + 1 : read.end;
        ++n;
    }
    return {n, -1, n_long};
}

template Ends read_numbers(Span<const Byte>, const Found<std::int32_t>&);
template Ends read_numbers(Span<const Byte>, const Found<std::int64_t>&);

}  // namespace odeco::numbers
