"""Figures of crowds: how reliable every annotator is, and how annotators confuse the classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.plots.names import check_suits

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Annotators:
    """The annotators of a crowd, the most reliable first.

    Attributes
    ----------
    order : (W,)
        Their numbers in ``confusion_``.
    names : tuple of str
    reliability : (W,)
        Probability that a label is right: the confusion's diagonal, classes weighed by their shares.
    information : (W,)
        What a label tells of the true class, in bits; an annotator who is always wrong can tell as much as one who is
        always right, one who guesses tells nothing.
    confusion : (W, k, L)
    n_labels : (W,) or None
        Labels that each of them gave, where the data are known.
    """

    order: NDArray[np.intp]
    names: tuple[str, ...]
    reliability: Floats
    information: Floats
    confusion: Floats = field(repr=False)
    n_labels: NDArray[np.intp] | None


def annotators(model: Any, data: Any = None) -> Annotators:
    """Reliability and confusion of the annotators of a fitted `DawidSkene`."""
    check_suits(model, "annotators")
    confusion, weights = np.asarray(model.confusion_), np.asarray(model.weights_)
    own = np.searchsorted(model.given_labels_, model.classes_)
    right = confusion[:, np.arange(len(weights)), own] @ weights
    bits = label_information(confusion, weights)
    order = np.argsort(-right, kind="stable")
    names = tuple(str(name) for name in np.asarray(model.annotators_)[order].tolist())
    counts = None if data is None else labels_given(model, data)[order]
    return Annotators(order, names, right[order], bits[order], confusion[order], counts)


def label_information(confusion: Floats, weights: Floats) -> Floats:
    """Mutual information, in bits, of the true class and the label of each annotator (W,)."""
    joint = weights[:, None] * confusion
    independent = weights[:, None] * joint.sum(axis=1, keepdims=True)
    terms = joint * np.log2(np.where(joint > 0, joint, 1.0) / np.where(joint > 0, independent, 1.0))
    return np.asarray(np.maximum(terms.sum(axis=(1, 2)), 0))


def labels_given(model: Any, data: Any) -> NDArray[np.intp]:
    """How many labels each annotator gave (W,)."""
    from odeco.sources.crowd import read_labels

    crowd = read_labels(data, model.layout_, workers=model.annotators_, classes=model.given_labels_)
    votes = np.asarray(crowd.votes.sum(axis=0)).reshape(len(model.annotators_), -1)
    return np.asarray(votes.sum(axis=1).round(), dtype=np.intp)
