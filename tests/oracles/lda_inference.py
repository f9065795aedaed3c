"""Latent Dirichlet allocation word by word: plain loops in double precision."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import digamma, gammaln


def em_proportions(counts, topics, alpha, n_iter):
    """MAP-EM for the proportions: theta_k proportional to alpha_k + sum_w c_w r_wk, from equal shares."""
    result = []
    for row in counts:
        strengths = np.full(len(alpha), row.sum() / len(alpha))
        for _ in range(n_iter):
            new = np.zeros(len(alpha))
            for word, count in enumerate(row):
                if count:
                    r = (strengths + alpha) * topics[:, word]
                    new += count * r / r.sum()
            strengths = new
        result.append((strengths + alpha) / (strengths + alpha).sum())
    return np.array(result)


def cvb0_step(counts, topics, own_word, alpha, strengths, spreads, floor, least_rest):
    """One step of CVB0 with own counts and their echo left out: new strengths, spreads and word counts (k, d)."""
    new, spread, words = np.zeros_like(strengths), np.zeros_like(spreads), np.zeros_like(topics)
    for i, row in enumerate(counts):
        total = strengths[i] + alpha
        chi = spreads[i] / total
        for word, count in enumerate(row):
            if not count:
                continue
            product = total * topics[:, word]
            own = topics[:, word] / np.maximum(1 - chi, least_rest) + total * own_word
            density = product.sum()
            left = max(density - count * (product * own).sum() / density, floor * density)
            r = product / (left + count * own)
            r /= r.sum()
            new[i] += count * r
            spread[i] += count * r * (1 - r)
            words[:, word] += count * r
    return new, spread, words


def evidence(row, topics, alpha):
    """Exact p(document | topics, alpha), by summing over the topics of all tokens; tiny documents only."""
    tokens = np.repeat(np.arange(len(row)), row.astype(int))
    total = 0.0
    for z in itertools.product(range(len(alpha)), repeat=len(tokens)):
        n = np.bincount(z, minlength=len(alpha))
        prior = gammaln(alpha.sum()) - gammaln(alpha.sum() + n.sum()) + (gammaln(alpha + n) - gammaln(alpha)).sum()
        total += np.exp(prior) * np.prod([topics[k, w] for k, w in zip(z, tokens, strict=True)])
    return total


def elbo(counts, gammas, lambdas, alpha, eta):
    """Evidence lower bound of plain variational Bayes at its best responsibilities, Dirichlet by Dirichlet."""
    log_topics = digamma(lambdas) - digamma(lambdas.sum(axis=1, keepdims=True))
    total = 0.0
    for row, gamma in zip(counts, gammas, strict=True):
        log_theta = digamma(gamma) - digamma(gamma.sum())
        for word, count in enumerate(row):
            total += count * np.log(np.exp(log_theta + log_topics[:, word]).sum())
        total -= kl_dirichlet(gamma, alpha)
    return total - sum(kl_dirichlet(row, np.full(len(row), eta)) for row in lambdas)


def kl_dirichlet(p, q):
    """KL(Dirichlet(p) || Dirichlet(q))."""
    expected = digamma(p) - digamma(p.sum())
    return gammaln(p.sum()) - gammaln(p).sum() - gammaln(q.sum()) + gammaln(q).sum() + ((p - q) * expected).sum()


def log_map(counts, proportions, topics, alpha, eta):
    """Log posterior of MAP-EM, up to a constant: Dirichlet(alpha + 1) and Dirichlet(eta + 1) priors."""
    total = eta * np.log(topics).sum()
    for row, theta in zip(counts, proportions, strict=True):
        total += (alpha * np.log(theta)).sum()
        for word, count in enumerate(row):
            total += count * np.log(theta @ topics[:, word]) if count else 0.0
    return total


def completion_perplexity(seen, scored, topics, smoothing, n_iter):
    """Document completion from two halves of dense counts."""
    k, d = topics.shape
    smoothed = (1 - smoothing) * topics + smoothing / d
    proportions = em_proportions(seen, smoothed, np.full(k, 1.0 / k), n_iter)
    return float(np.exp(-(scored * np.log(proportions @ smoothed)).sum() / scored.sum()))
