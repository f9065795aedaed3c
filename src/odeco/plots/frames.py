"""What a model has learned as one labelled DataFrame: a column for each component, a row for each thing it says.

Cards name the function of their model; all of them take the model and the names of its columns, words or symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from odeco.models.cards import known_card
from odeco.plots.columns import Profile, profiles, view_profiles
from odeco.plots.names import check_model, column_names
from odeco.plots.signals import mixing

Names = Iterable[Any] | None
Rows = list[tuple[tuple[Any, ...], Any]]  # labels of a row, and its value in each component


def column_frame(model: Any, names: Names = None) -> Any:
    """Columns in each component: mean and deviation of numbers, mean of counts, probabilities of categories."""
    rows = [row for profile in profiles(model, names) for row in _profile_rows(profile)]
    return _frame(model, rows, ("column", "value"))


def view_frame(model: Any, names: Names = None) -> Any:
    """The same, view by view."""
    found = view_profiles(model, None if names is None else list(names))
    rows = [((t, *label), values) for t, view in enumerate(found) for p in view for label, values in _profile_rows(p)]
    return _frame(model, rows, ("view", "column", "value"))


def word_frame(model: Any, names: Names = None) -> Any:
    """Probability of each word in each topic."""
    return _matrix_frame(model, np.asarray(model.components_).T, names, "word", "vocabulary")


def symbol_frame(model: Any, names: Names = None) -> Any:
    """Probability of each symbol in each state."""
    return _matrix_frame(model, np.asarray(model.emissionprob_).T, names, "symbol", "names")


def source_frame(model: Any, names: Names = None) -> Any:
    """How much of each source reaches each channel."""
    return _matrix_frame(model, mixing(model, None if names is None else list(names)).matrix, names, "channel", "names")


def crowd_frame(model: Any, names: Names = None) -> Any:
    """Probability of each label that an annotator gives to items of each class; names are those of the annotators."""
    confusion = np.asarray(model.confusion_)
    workers = [str(name) for name in (model.annotators_ if names is None else names)]
    if len(workers) != len(confusion):
        raise ValueError(f"names must hold {len(confusion)} names, one for each annotator, got {len(workers)}.")
    given = np.asarray(model.given_labels_).tolist()
    rows = [
        ((w, label), table[:, j]) for w, table in zip(workers, confusion, strict=True) for j, label in enumerate(given)
    ]
    return _frame(model, rows, ("annotator", "label"), np.asarray(model.classes_).tolist())


def weight_frame(model: Any, names: Names = None) -> Any:
    """Shares of the components, for models that say no more of theirs."""
    return _frame(model, [(("share",), np.asarray(model.weights_))], ("value",))


def _profile_rows(profile: Profile) -> Rows:
    if profile.kind == "categories":
        pairs = zip(profile.categories, profile.table.T, strict=True)
        return [((profile.name, category), shares) for category, shares in pairs]
    if profile.kind == "probability":
        return [((profile.name, "probability"), profile.means)]
    rows: Rows = [((profile.name, "mean"), profile.means)]
    return rows if profile.kind == "rate" else [*rows, ((profile.name, "deviation"), profile.deviations)]


def _matrix_frame(model: Any, matrix: Any, names: Names, what: str, argument: str) -> Any:
    labels = column_names(model, names, len(matrix), what=what, argument=argument)
    return _frame(model, [((label,), row) for label, row in zip(labels, matrix, strict=True)], (what,))


def _frame(model: Any, rows: Rows, levels: Sequence[str], components: Sequence[Any] | None = None) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("a labelled frame needs pandas, which is missing: pip install pandas.") from error
    check_model(model)
    labels = [label for label, _ in rows]
    index = pandas.MultiIndex.from_tuples(labels, names=levels)
    if len(levels) == 1:
        index = pandas.Index([label[0] for label in labels], name=levels[0])
    values = np.array([row for _, row in rows])
    numbers = range(values.shape[1]) if components is None else components
    return pandas.DataFrame(values, index=index, columns=pandas.Index(numbers, name=known_card(model).part))
