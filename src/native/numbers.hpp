// Numbers in lines of text, strictly. `odeco.kernels.numbers` says what the arrays hold.
#pragma once

#include "views.hpp"

namespace odeco::numbers {

using Byte = std::uint8_t;

// What is found of each number, and the decimals that are too long to be read here.
template <class Place> struct Found {
    Span<std::int64_t> whole;
    Span<double> decimal;
    Span<Byte> kinds, after;
    Span<Place> begins;
    Span<Byte> long_decimals;
};

// How many numbers there are, where the first fault is (-1: nowhere), and the bytes of the long decimals.
struct Ends {
    Index n, fault, n_long;
};

template <class Place> Ends read_numbers(Span<const Byte> text, const Found<Place>& found);

}  // namespace odeco::numbers
