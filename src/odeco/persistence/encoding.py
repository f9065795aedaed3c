"""Objects as plain data and back: JSON for the structure, arrays by name beside it.

None, booleans, whole numbers, finite floats, text and lists are themselves in JSON. Everything else is
``{"is": kind, ...}``. Arrays and objects that are there twice are kept once and are one again after reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.persistence.classes import class_of, name_of, rebuild, state_of

Node = Any  # what json.dumps takes


def _is_twister(state: Mapping[str, Any]) -> bool:
    """A place within the key, and a key that is not all zero: all that comes from that is zero, and draws never end."""
    key, place = state["state"]["key"], state["state"]["pos"]
    words = isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (624,)
    return words and type(place) is int and 0 <= place <= 624 and bool(key[1:].any() or key[0] >> 31)


def _is_congruential(state: Mapping[str, Any]) -> bool:
    return bool(state["state"]["inc"] % 2 == 1)  # an even one has a short period, 0 that of one number


# Bit generators, and whether a state is one of theirs.
_BIT_GENERATORS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "PCG64": _is_congruential,
    "PCG64DXSM": _is_congruential,
    "MT19937": _is_twister,
    "Philox": lambda state: type(state["buffer_pos"]) is int and 0 <= state["buffer_pos"] <= 4,
    "SFC64": lambda state: True,
}
_SPARSE = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}
_SCALARS = "biufcSU"


class Encoder:
    """Turns values into plain data; `arrays` fills on the way."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._names: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._open: set[int] = set()
        self._alive: list[Any] = []  # an id means nothing once its object is gone
        self._place: list[str] = []

    def encode(self, value: Any, place: str) -> Node:
        """The plain form of a value; `place` names it should it have none."""
        self._place.append(place)
        node = self._encode(value)
        self._place.pop()
        return node

    def _encode(self, value: Any) -> Node:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"is": "float", "value": repr(value)}
        if kind is list:
            return [self.encode(item, f"[{i}]") for i, item in enumerate(value)]
        if kind is tuple:
            return {"is": "tuple", "items": [self.encode(item, f"[{i}]") for i, item in enumerate(value)]}
        if isinstance(value, Mapping):
            items = [[self.encode(key, "key"), self.encode(item, f"[{key!r}]")] for key, item in value.items()]
            return {"is": "dict", "items": items}
        if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            return self._array(np.asarray(value))
        if isinstance(value, np.generic) and value.dtype.kind in _SCALARS:
            return {"is": "scalar", "array": self._store(np.asarray(value))}
        return self._object(value)

    def _array(self, array: NDArray[Any]) -> Node:
        if array.dtype != object:
            return {"is": "array", "name": self._store(array)}
        items = [self.encode(item, f"[{i}]") for i, item in enumerate(array.ravel().tolist())]
        return {"is": "objects", "shape": list(array.shape), "items": items}

    def _store(self, array: NDArray[Any]) -> str:
        name = self._names.get(id(array))
        if name is None:
            name = self._names[id(array)] = str(len(self.arrays))
            self.arrays[name] = array
        return name

    def _object(self, value: Any) -> Node:
        if id(value) in self._numbers:
            return {"is": "same", "as": self._numbers[id(value)]}
        with self._entered(value):
            node = self._known(value)
        self._numbers[id(value)] = len(self._numbers)
        self._alive.append(value)
        return node

    @contextmanager
    def _entered(self, value: Any) -> Iterator[None]:
        if id(value) in self._open:
            raise self._refusal(value, "which holds itself")
        self._open.add(id(value))
        yield
        self._open.remove(id(value))

    def _known(self, value: Any) -> Node:
        name = name_of(value)
        if name is not None and isinstance(value, Enum):
            return {"is": "enum", "class": name, "member": value.name}
        if name is not None:
            state = {key: self.encode(item, f".{key}") for key, item in state_of(value, name).items()}
            return {"is": "object", "class": name, "state": state}
        if isinstance(value, np.random.Generator):
            return {"is": "generator", "state": self.encode(value.bit_generator.state, ".state")}
        if isinstance(value, np.random.RandomState):
            return {"is": "random state", "state": self.encode(value.get_state(legacy=False), ".state")}
        if type(value).__name__ in _SPARSE and sparse.issparse(value):
            parts = {part: self._store(getattr(value, part)) for part in ("data", "indices", "indptr")}
            return {"is": "sparse", "class": type(value).__name__, "shape": list(value.shape), **parts}
        if type(value).__module__.startswith("pandas"):
            return self._pandas(value)
        raise self._refusal(value, "which model files do not know")

    def _pandas(self, value: Any) -> Node:
        """Rows that `ProductMixture.partial_fit` holds: columns as arrays, categories as codes."""
        import pandas as pd

        if value is pd.NA:
            return {"is": "NA"}
        if isinstance(value, pd.DataFrame):
            columns = [self.encode(value.iloc[:, j], f"[{j}]") for j in range(value.shape[1])]
            return {"is": "frame", "names": self.encode(list(value.columns), ".columns"), "columns": columns}
        if isinstance(value, pd.Series) and isinstance(value.dtype, pd.CategoricalDtype):
            codes, categories = value.cat.codes.to_numpy(), np.asarray(value.cat.categories)
            parts = {"codes": self._array(codes), "categories": self._array(categories)}
            return {"is": "categories", "ordered": bool(value.cat.ordered), **parts}
        if isinstance(value, pd.Series):
            return self._array(np.asarray(value))
        raise self._refusal(value, "which model files do not know")

    def _refusal(self, value: Any, why: str) -> ValueError:
        kind = type(value)
        return ValueError(f"{''.join(self._place)} is a {kind.__module__}.{kind.__qualname__}, {why}: cannot be saved.")


class Decoder:
    """Turns plain data back into values. Raises ValueError, KeyError or TypeError for what no encoder has written."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # as compiled loops want
        self._objects: list[Any] = []
        self._kinds: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "float": lambda node: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[node["value"]],
            "tuple": lambda node: tuple(self.decode(item) for item in node["items"]),
            "dict": lambda node: {self.decode(key): self.decode(item) for key, item in node["items"]},
            "array": lambda node: self._arrays[node["name"]],
            "scalar": lambda node: self._arrays[node["array"]][()],
            "objects": self._object_array,
            "same": lambda node: self._objects[_index(node["as"])],
        }
        self._remembered: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "object": self._object,
            "enum": lambda node: class_of(node["class"]).__members__[node["member"]],
            "generator": self._generator,
            "random state": self._random_state,
            "sparse": self._sparse,
            "frame": self._frame,
            "categories": self._categories,
            "NA": _missing,
        }

    def decode(self, node: Node) -> Any:
        """The value of a plain form."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node["is"]
        if kind in self._kinds:
            return self._kinds[kind](node)
        value = self._remembered[kind](node)
        self._objects.append(value)
        return value

    def _object_array(self, node: Mapping[str, Any]) -> NDArray[np.object_]:
        items = [self.decode(item) for item in node["items"]]
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape([_index(length) for length in node["shape"]])

    def _object(self, node: Mapping[str, Any]) -> Any:
        return rebuild(node["class"], {key: self.decode(item) for key, item in node["state"].items()})

    def _generator(self, node: Mapping[str, Any]) -> np.random.Generator:
        return np.random.Generator(_bit_generator(self.decode(node["state"])))

    def _random_state(self, node: Mapping[str, Any]) -> np.random.RandomState:
        found = self.decode(node["state"])
        state = np.random.RandomState(_bit_generator(found))
        state.set_state(found)
        return state

    def _sparse(self, node: Mapping[str, Any]) -> Any:
        # Copies: an array that another object writes to would not stay as it was checked.
        parts = [self._arrays[node[part]].copy() for part in ("data", "indices", "indptr")]
        shape = tuple(_index(length) for length in node["shape"])
        matrix = _SPARSE[node["class"]](tuple(parts), shape=shape)
        matrix.check_format(full_check=True)  # kernels index by it
        return matrix

    def _frame(self, node: Mapping[str, Any]) -> Any:
        import pandas as pd

        names = self.decode(node["names"])
        frame = pd.DataFrame(dict(enumerate(self.decode(node["columns"]))))
        frame.columns = pd.Index(names)
        return frame

    def _categories(self, node: Mapping[str, Any]) -> Any:
        import pandas as pd

        codes, categories = self.decode(node["codes"]), self.decode(node["categories"])
        return pd.Series(pd.Categorical.from_codes(codes, categories, ordered=bool(node["ordered"])))


def _bit_generator(state: Mapping[str, Any]) -> np.random.BitGenerator:
    """The source of random bits in this state; numpy believes everything that it is told of one."""
    name = state["bit_generator"]
    if name not in _BIT_GENERATORS:
        raise ValueError(f"unknown bit generator {name!r}.")
    if not _BIT_GENERATORS[name](state):
        raise ValueError(f"no {name} can be in the state that the file has.")
    bits: np.random.BitGenerator = getattr(np.random, name)()
    bits.state = state
    return bits


def _index(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a size.")
    return value


def _missing(node: Mapping[str, Any]) -> Any:
    import pandas as pd

    return pd.NA
