"""How a model was fitted, so that it can be fitted again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

import odeco
from odeco.fitting.card import path_of
from odeco.models.cards import OWN, known_card

# What `fit` is given, where that is more than X.
_ARGUMENTS = {"views": "[X1, X2, X3]", "labels": "labels"}
_ARGUMENTS |= dict.fromkeys(("symbols", "features", "events"), "X, lengths")


def python_call(model: Any) -> str:
    """The Python that makes the estimator again, with the options that are not the defaults."""
    card = known_card(model)
    name, package = card.class_name, "odeco" if card in OWN else path_of(card.estimator).partition(":")[0]
    options = [f"{key}={_literal(value)}" for key, value in changed_options(model).items()]
    call = f"{package}.{name}({', '.join(options)})"
    if len(call) > 88:
        call = f"{package}.{name}(\n" + "".join(f"    {option},\n" for option in options) + ")"
    return f"import {package}\n\nmodel = {call}\nmodel.fit({_ARGUMENTS.get(card.rows, 'X')})"


def changed_options(model: Any) -> dict[str, Any]:
    """Options that differ from the defaults of the estimator."""
    defaults = {key: p.default for key, p in inspect.signature(type(model)).parameters.items()}
    return {key: value for key, value in model.get_params(deep=False).items() if not _equal(value, defaults.get(key))}


def all_options(model: Any) -> list[tuple[str, str, bool]]:
    """Name, value and whether it was changed, of every option."""
    changed = changed_options(model)
    return [(key, _literal(value), key in changed) for key, value in model.get_params(deep=False).items()]


def facts(model: Any, fitted: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What else is known of the fit: method, passes, versions, and what the caller says beyond the model's options."""
    report = model.diagnostics_
    found = [("method", report.method), ("passes over the data, refinement not counted", str(report.n_passes))]
    given = dict(fitted or {})
    given.pop("command", None)
    for key, value in given.items():
        if isinstance(value, Mapping):
            own = model.get_params(deep=False)
            found.extend((str(name), _plain(item)) for name, item in value.items() if name not in own)
        else:
            found.append((str(key), _plain(value)))
    if "odeco" not in given:
        found.append(("odeco", odeco.__version__))
    return found


def seed_advice(model: Any) -> str:
    """A word where the fit cannot be repeated digit for digit."""
    seed = getattr(model, "random_state", 0)
    if seed is None:
        return "No seed was given (random_state=None): another fit may differ."
    if not isinstance(seed, (int, np.integer)):
        return "The seed was a generator whose state is not known: another fit may differ."
    return ""


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.4g}"
    return str(value)


def _literal(value: Any) -> str:
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _equal(value: Any, default: Any) -> bool:
    try:
        return bool(value is default or value == default)
    except ValueError:  # arrays
        return False
