"""How a fitted estimator shows itself: as a labelled DataFrame, and as HTML in a notebook.

Both are made from the model's card, which is found by name: cards stand above this layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from odeco.fitting.card import Card, Part, resolve

_MOST_PARTS, _MOST_ITEMS = 30, 8


class Shown:
    """What every estimator has for its readers."""

    def to_frame(self, names: Iterable[Any] | None = None) -> Any:
        """What was learned of each component, as a pandas DataFrame with a column for each.

        Rows are columns of the data with their mean and deviation, or with the probability of each category; words of
        topics; symbols of states; channels of sources; labels of annotators.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the columns, words, symbols, channels or annotators; those of a DataFrame are known.

        Examples
        --------
        >>> import numpy as np
        >>> from odeco import ProductMixture
        >>> rng = np.random.default_rng(0)
        >>> old = rng.random(400) < 0.4
        >>> X = np.column_stack([np.where(old, 70, 30) + rng.standard_normal(400), rng.random((400, 2)) < 0.5])
        >>> X[:, 1] = np.where(old, X[:, 1], 0)
        >>> model = ProductMixture(2, random_state=0).fit(X)
        >>> model.to_frame(["age", "retired", "left-handed"]).loc[("age", "mean")].round().tolist()
        [30.0, 70.0]
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return resolve(_card(self).frame)(self, None if names is None else list(names))

    def _repr_html_inner(self) -> str:
        return html_of(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        from sklearn import get_config

        shown = {"text/plain": repr(self)}
        return {**shown, "text/html": html_of(self)} if get_config()["display"] == "diagram" else shown


def html_of(model: Any) -> str:
    """scikit-learn's diagram of the parameters and, once the model is fitted, its components and the verdict on it."""
    from sklearn.utils import estimator_html_repr

    diagram: str = estimator_html_repr(model)
    report = getattr(model, "diagnostics_", None)
    if report is None:
        return diagram
    return f"{diagram}<div>{_table(_card(model), _parts(model))}{report._repr_html_()}</div>"


def _card(model: Any) -> Card:
    found: Card = resolve("odeco.models.cards:known_card")(model)
    return found


def _parts(model: Any) -> Sequence[Part]:
    known = getattr(model, "feature_names_in_", None)
    names: Mapping[str, Any] = {} if known is None else {"vocabulary": list(known), "feature_names": list(known)}
    parts: Sequence[Part] = resolve(_card(model).parts)(model, names, _MOST_ITEMS)
    return parts


def _table(card: Card, parts: Sequence[Part]) -> str:
    facts = list(parts[0].facts) if parts else []
    head = "".join(f"<th>{escape(name)}</th>" for name in (card.part, *facts, ""))
    rows = "".join(
        f"<tr><th>{escape(str(part.name))}</th>{''.join(f'<td>{value:.3g}</td>' for value in part.facts.values())}"
        f'<td style="text-align:left">{escape(", ".join(map(_item, part.items)))}</td></tr>'
        for part in parts[:_MOST_PARTS]
    )
    more = f"<p>and {len(parts) - _MOST_PARTS} more</p>" if len(parts) > _MOST_PARTS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _item(item: Mapping[str, Any]) -> str:
    """A word as it is, a column with what it is in this component."""
    value = next((item[key] for key in ("mean", "weight", "said", "share") if key in item), None)
    return str(item["name"]) if value is None else f"{item['name']} {value:.3g}"
