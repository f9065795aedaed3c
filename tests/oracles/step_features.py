"""Features of observations and sums over consecutive steps, by the formulas and one step at a time."""

from __future__ import annotations

import numpy as np

from odeco.moments.sequence_features import FeatureBasis, FeatureMap

Steps = tuple[np.ndarray, np.ndarray, np.ndarray]


def features_of(features: FeatureMap, values: np.ndarray) -> np.ndarray:
    """Features (m, f), in the order that `FeatureMap.size` says."""
    centred = values - features.center
    y = np.clip(np.where(np.isnan(centred), 0.0, centred) @ features.axes, -6.0, 6.0)
    crossed = [y[:, a] * y[:, b] for a, b in features.products]
    steps = [2 * y] + [2 * (y - knot) for knot in features.knots]
    first, *others = [u / (1 + np.abs(u)) for u in steps]
    bumps = [1 / (1 + y**2) ** 2, 1 / (1 + 8 * y**2)]
    return np.hstack([y, y**2, *(c[:, None] for c in crossed), first, np.log(y**2 + 0.05), *bumps, *others])


def basis_of_steps(basis: FeatureBasis, values: np.ndarray) -> np.ndarray:
    """z of each step, (m, size)."""
    z = (features_of(basis.features, values) - basis.mean) @ basis.projection
    return np.hstack([np.ones((len(values), 1)), z])


def pair_sums(features: FeatureMap, steps: Steps) -> dict[str, np.ndarray]:
    """What `FeaturePairs` adds up."""
    values, first, weights = steps
    f = features_of(features, values)
    size = f.shape[1]
    found = {"total": np.zeros(size), "square": np.zeros((size, size)), "lagged": np.zeros((size, size))}
    found |= {"weight": np.zeros(()), "pair_weight": np.zeros(())}
    for t in range(len(values)):
        found["total"] += weights[t] * f[t]
        found["square"] += weights[t] * np.outer(f[t], f[t])
        found["weight"] += weights[t]
        if t + 1 < len(values) and not first[t + 1]:
            weight = min(weights[t : t + 2])
            found["lagged"] += weight * np.outer(f[t], f[t + 1])
            found["pair_weight"] += weight
    return found


def triple_sums(basis: FeatureBasis, steps: Steps) -> dict[str, np.ndarray]:
    """What `FeatureTriples` adds up."""
    values, first, weights = steps
    z, d, k = basis_of_steps(basis, values), values.shape[1], basis.size
    paired = len(basis.features.products) > 0
    shape = (2 * k, d, d) if paired else (2 * k, d)
    found = {"pairs": np.zeros((k, k)), "triples": np.zeros((k, k, k)), "first": np.zeros(k)}
    found |= {"seen": np.zeros((2 * k, d)), "values": np.zeros((2 * k, d))}
    found |= {"seen_products": np.zeros(shape), "products": np.zeros(shape)}
    found |= {name: np.zeros(()) for name in ("pair_weight", "triple_weight", "first_weight")}
    for t in range(len(values)):
        if first[t]:
            found["first"] += weights[t] * z[t]
            found["first_weight"] += weights[t]
        if t + 1 >= len(values) or first[t + 1]:
            continue
        weight = min(weights[t : t + 2])
        found["pairs"] += weight * np.outer(z[t], z[t + 1])
        found["pair_weight"] += weight
        if t + 2 >= len(values) or first[t + 2]:
            continue
        weight = min(weights[t : t + 3])
        found["triples"] += weight * np.multiply.outer(np.outer(z[t], z[t + 1]), z[t + 2])
        found["triple_weight"] += weight
        _add_middle(found, values[t + 1] - basis.features.center, weight * np.append(z[t], z[t + 2]), paired)
    return found


def _add_middle(found: dict[str, np.ndarray], row: np.ndarray, around: np.ndarray, paired: bool) -> None:
    """What is there of a middle step, times z of both neighbours."""
    there = np.flatnonzero(~np.isnan(row))
    for a in there:
        found["seen"][:, a] += around
        found["values"][:, a] += around * row[a]
        for b in there if paired else [a]:
            place = (slice(None), a, b) if paired else (slice(None), a)
            found["seen_products"][place] += around
            found["products"][place] += around * row[a] * row[b]
