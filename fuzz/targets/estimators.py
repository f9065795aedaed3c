"""Odd calls of the estimators: data and options that nobody should bring, in an order that nobody should take.

What a fit leaves is checked by `odeco.save`, which knows what every estimator learns: shapes, finite values, simplices.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import odeco
from fuzz.cases import is_clean
from fuzz.models import CASES
from fuzz.mutations import Rng, choose

# What people who misuse an array are told by scikit-learn and numpy.
CLEAN = (TypeError, AttributeError)
_ODD = [None, True, "", "x", -1, 0, 0.5, 1, 2, 3, 7, 1e300, float("nan"), "auto", "moments", [], [1, 2], {"a": 1}]
_LATER = (
    "fit",
    "partial_fit",
    "predict",
    "predict_proba",
    "transform",
    "score",
    "score_samples",
    "sample",
    "decode",
    "bic",
)


def generate(rng: Rng, folder: Path) -> dict[str, Any]:
    name = choose(rng, CASES)
    model = CASES[name].make()
    later = [call for call in _LATER if hasattr(model, call)]
    changed = {choose(rng, sorted(model.get_params())): choose(rng, _ODD) for _ in range(int(rng.integers(0, 3)))}
    calls = [[choose(rng, ("fit", "fit", "partial_fit")), _data(rng)]]
    calls += [[choose(rng, later), _data(rng)] for _ in range(int(rng.integers(0, 4)))]
    return {"estimator": name, "parameters": changed, "calls": calls}


def _data(rng: Rng) -> dict[str, Any]:
    oddities = [choose(rng, sorted(_ODDITIES)) for _ in range(int(rng.integers(0, 3)))]
    return {
        "rows": choose(rng, (0, 1, 2, 5, 20, 100, 100, 100, 1000)),
        "oddities": oddities,
        "seed": int(rng.integers(10**6)),
    }


def run(case: dict[str, Any], folder: Path) -> None:
    known = CASES[case["estimator"]]
    model = known.make().set_params(**case["parameters"])
    refusal = None
    for call, recipe in case["calls"]:
        try:
            _call(model, call, _made(known.chunks()[0], recipe))
        except Exception as error:
            if not (is_clean(error) or isinstance(error, CLEAN)):
                raise
            refusal = error
    if hasattr(model, "diagnostics_"):
        _check(model, folder)
    if refusal is not None:
        raise refusal


def _call(model: Any, name: str, data: Any) -> None:
    answer = getattr(model, name)(data if name != "sample" else 5)
    if name == "predict_proba" and isinstance(answer, np.ndarray):
        assert np.isfinite(answer).all(), "probabilities that are not finite"
        assert np.allclose(answer.sum(axis=-1), 1, atol=1e-6), "probabilities that do not add up to 1"


def _check(model: Any, folder: Path) -> None:
    try:
        odeco.save(model, folder / "fitted.odeco")
        odeco.load(folder / "fitted.odeco")
    except ValueError as error:
        raise AssertionError(f"a fit that cannot be kept: {error}") from error


def _made(data: Any, recipe: dict[str, Any]) -> Any:
    """The data of a recipe: some rows of sound data, with oddities."""
    rng = np.random.default_rng(recipe["seed"])
    if isinstance(data, list):
        return [_made(view, recipe) for view in data]
    rows = data[: recipe["rows"]] if not hasattr(data, "iloc") else data.iloc[: recipe["rows"]]
    for name in recipe["oddities"]:
        rows = _odd(rows, name, rng)
    return rows


def _odd(rows: Any, name: str, rng: Rng) -> Any:
    if name == "dense" and sparse.issparse(rows):
        return rows.toarray()
    if not isinstance(rows, np.ndarray):
        return rows if name not in _VALUES or not sparse.issparse(rows) or not rows.nnz else _with_data(rows, name, rng)
    return _ODDITIES[name](rows, rng) if rows.size and rows.dtype.kind in "biuf" else rows


def _with_data(rows: Any, name: str, rng: Rng) -> Any:
    changed = rows.astype(float)
    changed.data = _ODDITIES[name](changed.data, rng)
    return changed


def _put(value: float) -> Any:
    def put(rows: Any, rng: Rng) -> Any:
        changed = np.array(rows, dtype=float)
        changed.flat[rng.integers(changed.size, size=int(rng.integers(1, 4)))] = value
        return changed

    return put


_VALUES = {
    "NaN": _put(np.nan),
    "infinite": _put(np.inf),
    "negative": _put(-1.0),
    "half": _put(0.5),
    "huge": _put(1e300),
    "large": _put(1e6),
    "scaled up": lambda rows, rng: rows * 1e150,
    "scaled down": lambda rows, rng: rows * 1e-150,
    "constant": lambda rows, rng: np.full_like(rows, 3),
    "zero": lambda rows, rng: np.zeros_like(rows),
    "far away": lambda rows, rng: rows + 1e9,
    "single": lambda rows, rng: rows.astype(np.float32),
    "bytes": lambda rows, rng: rows.astype(np.uint8),
    "whole": lambda rows, rng: np.round(rows).astype(np.int64),
}
_ODDITIES = {
    **_VALUES,
    "dense": lambda rows, rng: rows,
    "the same row": lambda rows, rng: np.repeat(rows[:1], len(rows), axis=0),
    "two rows": lambda rows, rng: np.resize(rows[:2], rows.shape),
    "a constant column": lambda rows, rng: _with_column(rows, 0.0),
    "equal columns": lambda rows, rng: np.repeat(rows[:, :1], rows.shape[1], axis=1) if rows.ndim > 1 else rows,
    "one column": lambda rows, rng: rows[:, :1] if rows.ndim > 1 else rows,
    "no columns": lambda rows, rng: rows[:, :0] if rows.ndim > 1 else rows,
    "more columns": lambda rows, rng: np.hstack([rows, rows]) if rows.ndim > 1 else rows,
    "flat": lambda rows, rng: rows.ravel(),
    "three axes": lambda rows, rng: rows[None],
    "objects": lambda rows, rng: rows.astype(object),
    "text": lambda rows, rng: rows.astype(str),
    "a list": lambda rows, rng: rows.tolist(),
    "by columns": lambda rows, rng: np.asfortranarray(rows),
    "backwards": lambda rows, rng: rows[::-1],
    "big-endian": lambda rows, rng: rows.astype(rows.dtype.newbyteorder(">")),
}


def _with_column(rows: Any, value: float) -> Any:
    changed = np.array(rows, dtype=float)
    changed[..., 0] = value
    return changed
