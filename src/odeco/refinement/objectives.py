"""What plain variational Bayes and MAP-EM climb: both never fall, so both can be tested and stopped by them.

Both come from the same sweep. With t = N + alpha (MAP) or exp(digamma(N + alpha)) (variational) for a document and
topics likewise, the sweep returns L = sum c log(sum_k t_k phi_wk) before its update; what is left depends on the
parameters alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

Floats = NDArray[np.float64]


def map_terms(
    strengths: Floats, alpha: Floats, lengths: Floats, weights: Floats, word_counts: Floats, eta: float
) -> float:
    """Log prior of MAP-EM, up to constants: Dirichlet(alpha + 1) proportions, Dirichlet(eta + 1) topics.

    Less the normalization of the proportions that L lacks.
    """
    totals = lengths + alpha.sum()
    documents = weights @ (np.log(strengths + alpha) @ alpha - alpha.sum() * np.log(totals))
    topics = word_counts + eta
    prior = eta * (np.log(topics).sum() - len(topics) * np.log(topics.sum(axis=0)).sum())
    return float(documents + prior - (weights * lengths) @ np.log(totals))


def map_topics(word_counts: Floats, eta: float) -> Floats:
    """``(n_wk + eta) / (n_k + d eta)``: the mode under Dirichlet(eta + 1)."""
    topics = word_counts + eta
    return np.asarray(topics / topics.sum(axis=0))


def variational_terms(
    strengths: Floats, alpha: Floats, lengths: Floats, weights: Floats, word_counts: Floats, eta: float
) -> float:
    """The evidence lower bound without L: minus the divergences of the posteriors from their priors."""
    documents = weights @ _divergences((strengths + alpha), alpha)
    topics = _divergences((word_counts + eta).T, np.full(len(word_counts), eta)).sum()
    return float(-documents - topics - (weights * lengths) @ digamma(lengths + alpha.sum()))


def variational_topics(word_counts: Floats, eta: float) -> Floats:
    """``exp(E log phi)`` under the posterior Dirichlet(n + eta)."""
    topics = word_counts + eta
    return np.asarray(np.exp(digamma(topics) - digamma(topics.sum(axis=0))))


def _divergences(posterior: Floats, prior: Floats) -> Floats:
    """KL(Dirichlet(row) || Dirichlet(prior)) of each row of the posterior."""
    totals = posterior.sum(axis=1)
    expected = digamma(posterior) - digamma(totals)[:, None]
    constants = gammaln(totals) - gammaln(posterior).sum(axis=1) - gammaln(prior.sum()) + gammaln(prior).sum()
    return np.asarray(constants + ((posterior - prior) * expected).sum(axis=1))
