"""Versions of a mixture side by side: one with all their components, so that rows are read once for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.free import Free

Floats = NDArray[np.float64]


class Stack:
    """A fitted mixture with other values of its free parameters, several times."""

    def __init__(self, model: Any, frees: Sequence[Free], versions: Sequence[Mapping[str, Floats]]) -> None:
        self.n, self.k = len(versions), int(np.size(model.weights_))
        # What all components share cannot differ among the components of one model.
        together = all(free.axis is not None for free in frees)
        self._models = [_joined(model, frees, versions)] if together else [model._moved(each) for each in versions]

    def joint(self, batch: Any) -> Floats:
        """Log weights plus log densities of the rows of a batch (m, versions, k)."""
        found = np.hstack([np.asarray(model._batch_joint(batch), dtype=np.float64) for model in self._models])
        if len(self._models) == 1:
            found += np.log(self.n)  # the weights of all versions sum to 1
        return found.reshape(len(found), self.n, self.k)


def _joined(model: Any, frees: Sequence[Free], versions: Sequence[Mapping[str, Floats]]) -> Any:
    values = {
        free.name: np.concatenate([each.get(free.name, free.values) for each in versions], axis=free.axis)
        for free in frees
    }
    values["weights_"] = values["weights_"] / len(versions)
    return model._moved(values)
