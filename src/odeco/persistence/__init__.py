"""Models in files: one file each, versioned, plain arrays and JSON, no pickle.

`save` keeps the constructor's parameters and everything that was learned, the sums of `partial_fit` included: after
`load` a model answers as it did, bit for bit, and can go on learning. See `odeco.archive` for the file itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import odeco
from odeco import archive
from odeco.exceptions import ModelFileError
from odeco.models.cards import card_of_class, cards
from odeco.persistence.attributes import check_learned
from odeco.persistence.encoding import Decoder, Encoder

__all__ = ["SavedModel", "load", "load_with_metadata", "save"]

KIND = "model"
VERSION = 2  # 1 was never released


@dataclass(frozen=True, eq=False)
class SavedModel:
    """What a model file holds.

    Attributes
    ----------
    model : estimator
    metadata : dict
        What was given to `save` beside the model, as JSON gives it back; empty where nothing was.
    odeco : str
        The version of odeco that wrote the file.
    """

    model: Any
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    odeco: str = ""


def save(model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None) -> None:
    """Write an estimator of odeco, fitted or not, to a file.

    Parameters
    ----------
    model : estimator
        Any that has a card: odeco's own, those of packages that bring cards, those that were registered. Subclasses
        and estimators of other libraries are refused: loading could not rebuild them.
    path : str or path
        Replaced when the file is complete, and only then.
    metadata : mapping, default=None
        Anything that JSON can hold (keys are text), to travel with the model: vocabulary, names, how it was fitted.
    """
    card = card_of_class(type(model).__name__)
    if card is None or type(model) is not card.load():
        names = ", ".join(known.class_name for known in cards())
        raise ValueError(f"model must be an estimator of odeco ({names}), got {type(model)!r}.")
    parameters = model.get_params(deep=False)
    state = {key: value for key, value in vars(model).items() if key not in parameters}
    check_learned(card, parameters, state)
    encoder = Encoder()
    document = {
        "odeco": odeco.__version__,
        "estimator": card.class_name,
        "parameters": {key: encoder.encode(value, key) for key, value in parameters.items()},
        "learned": {key: encoder.encode(value, key) for key, value in state.items()},
        "metadata": _checked({} if metadata is None else metadata),
    }
    archive.write(path, KIND, VERSION, document, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator in a file that `save` wrote.

    Nothing in the file is executed, and nothing outside of it is touched. A file that is damaged, cut short, forged or
    of a newer version raises `odeco.exceptions.ModelFileError`.
    """
    return load_with_metadata(path).model


def load_with_metadata(path: str | os.PathLike[str]) -> SavedModel:
    """The estimator in a file, and what was saved beside it."""
    version, document, arrays = archive.read(path, KIND, VERSION)
    if version < VERSION:
        raise ModelFileError(f"{os.fspath(path)}: has the format {version} of a development version: fit it again.")
    try:
        return _rebuild(document, Decoder(arrays))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{os.fspath(path)}: damaged ({type(error).__name__}: {error}).") from error
    except ImportError as error:  # pandas, for rows of a DataFrame that `partial_fit` holds; the package of a card
        raise ModelFileError(
            f"{os.fspath(path)}: needs {error.name} to be read ({error}): install or mend it."
        ) from error


def _rebuild(document: Mapping[str, Any], decoder: Decoder) -> SavedModel:
    card = card_of_class(document["estimator"])
    if card is None:
        raise ModelFileError(f"unknown estimator {document['estimator']!r}: no card of that name is registered.")
    parameters = {key: decoder.decode(node) for key, node in document["parameters"].items()}
    model = card.load()(**parameters)
    state = {key: decoder.decode(node) for key, node in document["learned"].items()}
    check_learned(card, model.get_params(deep=False), state)
    for key, value in state.items():
        setattr(model, key, value)
    metadata, version = document["metadata"], document["odeco"]
    if not isinstance(metadata, dict) or not isinstance(version, str):
        raise ModelFileError("metadata is not an object.")
    return SavedModel(model, metadata, version)


def _checked(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as JSON gives it back, so that what is read later is what could be seen now."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"metadata must be something that JSON can hold: {error}.") from error
    if not isinstance(plain, dict) or list(plain) != list(metadata):
        raise ValueError(f"metadata must be a mapping with text for keys, got {type(metadata).__name__}.")
    return plain
