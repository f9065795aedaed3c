"""Components of a replicate in the order of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.metrics import match_components
from odeco.uncertainty.parameters import Learned

Floats = NDArray[np.float64]


def component_parts(model: Any, arrays: list[Learned]) -> list[Floats]:
    """What each component has to itself, (k, p) from each array."""
    parts = []
    for learned in arrays:
        if len(learned.axes) == 1 and learned.of(model).ndim > 1:
            values = np.moveaxis(learned.of(model), learned.axes[0], 0)
            parts.append(values.reshape(len(values), -1))
    if not parts:
        parts = [learned.of(model)[:, None] for learned in arrays if len(learned.axes) == 1]
    return parts


def scales_of(parts: list[Floats]) -> list[float]:
    """How far components are apart in each array: columns that do not tell them apart count for little."""
    return [max(float(part.std(axis=0).max()), 1e-12) for part in parts]


class Matcher:
    """Puts components of replicates into the order of a fit, columns weighed by how far its components are apart."""

    def __init__(self, model: Any, arrays: list[Learned]) -> None:
        self.arrays, self.up_to_sign = arrays, bool(model._signed)
        self.signed = model._signed
        parts = component_parts(model, arrays)
        self.scales = scales_of(parts)
        self.fit = self.vectors(model)

    def vectors(self, model: Any) -> Floats:
        """Components as columns (p, k)."""
        parts = component_parts(model, self.arrays)
        return np.hstack([part / scale for part, scale in zip(parts, self.scales, strict=True)]).T

    def __call__(self, replicate: Any) -> list[Floats] | None:
        """The arrays of a replicate in the order of the fit; None where it has other shapes or is not finite."""
        if getattr(replicate, "_in_order", False):
            return [learned.of(replicate) for learned in self.arrays]
        found = self.vectors(replicate)
        if found.shape != self.fit.shape or not np.isfinite(found).all():
            return None
        matched = match_components(found, self.fit, up_to_sign=self.up_to_sign)
        plus = np.ones(len(matched.signs))
        return [
            learned.permuted(
                learned.of(replicate), matched.permutation, matched.signs if learned.name in self.signed else plus
            )
            for learned in self.arrays
        ]
