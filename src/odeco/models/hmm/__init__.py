"""Hidden Markov models of symbols, vectors and counts."""
