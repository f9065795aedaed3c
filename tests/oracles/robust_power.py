"""Algorithms 1 and 2 of the paper word by word: one start after the other, on an array that is deflated for real."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Extracted:
    """An eigenpair, the deflated tensor, and the number of starts that were tried."""

    vector: np.ndarray
    value: float
    deflated: np.ndarray
    starts: int


def value(tensor: np.ndarray, theta: np.ndarray) -> float:
    """T(theta, theta, theta)."""
    return float(np.einsum("abc,a,b,c->", tensor, theta, theta, theta))


def power_updates(tensor: np.ndarray, theta: np.ndarray, n_iter: int) -> np.ndarray:
    """N times theta := T(I, theta, theta) / ||T(I, theta, theta)||."""
    for _ in range(n_iter):
        image = np.einsum("abc,b,c->a", tensor, theta, theta)
        theta = image / np.linalg.norm(image)
    return theta


def cube(vector: np.ndarray) -> np.ndarray:
    return np.einsum("a,b,c->abc", vector, vector, vector)


def algorithm_1(tensor: np.ndarray, starts: Iterable[np.ndarray], n_iter: int) -> Extracted:
    """One call of Algorithm 1; `starts` are its L draws from the sphere."""
    ends = [power_updates(tensor, theta, n_iter) for theta in starts]
    best = max(ends, key=lambda theta: value(tensor, theta))
    vector = power_updates(tensor, best, n_iter)
    found = value(tensor, vector)
    return Extracted(vector, found, tensor - found * cube(vector), len(ends))


def stopping_condition(tensor: np.ndarray, theta: np.ndarray, r: int) -> bool:
    """|T(theta, theta, theta)| >= max(||T||_F / (2 sqrt(r)), ||T(I, I, theta)||_F / 1.05)."""
    whole = np.sqrt(np.sum(tensor**2)) / (2 * np.sqrt(r))
    slice_norm = np.sqrt(np.sum(np.einsum("abc,c->ab", tensor, theta) ** 2)) / 1.05
    return abs(value(tensor, theta)) >= max(whole, slice_norm)


def algorithm_2(tensor: np.ndarray, starts: Iterable[np.ndarray], n_iter: int, r: int) -> Extracted:
    """One call of Algorithm 2; `starts` is an endless stream of draws from the sphere."""
    for tried, start in enumerate(starts, 1):
        theta = power_updates(tensor, start, n_iter)
        if stopping_condition(tensor, theta, r):
            break
    vector = power_updates(tensor, theta, n_iter)
    found = value(tensor, vector)
    return Extracted(vector, found, tensor - found * cube(vector), tried)
