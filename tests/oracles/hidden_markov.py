"""Hidden Markov models by enumeration of every sequence of states, and moments of symbols by loops."""

from __future__ import annotations

from itertools import product

import numpy as np


def enumerate_paths(start, transmat, likelihoods):
    """All sequences of states of one sequence and their joint probability with the observations.

    likelihoods (n, k) are the probabilities of each observation in each state.
    """
    n, k = likelihoods.shape
    for path in product(range(k), repeat=n):
        probability = start[path[0]] * likelihoods[0, path[0]]
        for t in range(1, n):
            probability *= transmat[path[t - 1], path[t]] * likelihoods[t, path[t]]
        yield path, probability


def enumerate_model(start, transmat, likelihoods):
    """Likelihood, posteriors (n, k), expected transitions (k, k), best path and its probability, of one sequence."""
    n, k = likelihoods.shape
    total, best, best_path = 0.0, -1.0, None
    posterior, transitions = np.zeros((n, k)), np.zeros((k, k))
    for path, probability in enumerate_paths(start, transmat, likelihoods):
        total += probability
        for t in range(n):
            posterior[t, path[t]] += probability
        for t in range(1, n):
            transitions[path[t - 1], path[t]] += probability
        if probability > best:
            best, best_path = probability, path
    return total, posterior / total, transitions / total, np.array(best_path), best


def filtered(start, transmat, likelihoods):
    """Posterior of each state given the observations up to it: the last posterior of each prefix."""
    return np.array([enumerate_model(start, transmat, likelihoods[: t + 1])[1][t] for t in range(len(likelihoods))])


def pair_counts(sequences, n_symbols, weights=None):
    """How often each symbol follows another; negative symbols are missing."""
    counts = np.zeros((n_symbols, n_symbols))
    for s, sequence in enumerate(sequences):
        for t in range(len(sequence) - 1):
            if sequence[t] >= 0 and sequence[t + 1] >= 0:
                counts[sequence[t], sequence[t + 1]] += 1.0 if weights is None else weights[s]
    return counts


def triple_counts(sequences, n_symbols, weights=None):
    """The same for three consecutive symbols."""
    counts = np.zeros((n_symbols,) * 3)
    for s, sequence in enumerate(sequences):
        for t in range(len(sequence) - 2):
            window = sequence[t : t + 3]
            if min(window) >= 0:
                counts[tuple(window)] += 1.0 if weights is None else weights[s]
    return counts
