"""One door in front of all methods: it validates, chooses the rank, runs, and warns."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odeco._random import RandomState, as_generator
from odeco.decomposition.finish import Found, finish, relative_residual
from odeco.decomposition.flattening import flattening_svd
from odeco.decomposition.jennrich import one_slice
from odeco.decomposition.joint import joint_diagonalization
from odeco.decomposition.orthogonal import orthogonal_iteration
from odeco.decomposition.power import power_method
from odeco.decomposition.rank import rank_above_noise
from odeco.decomposition.result import Certificate, Decomposition, Status, StatusCode
from odeco.decomposition.stopping import power_method_stopping
from odeco.exceptions import MomentWarning
from odeco.kernels.threads import single_threaded_blas
from odeco.tensors import ExplicitTensor, SymmetricTensor, as_symmetric_tensor


@dataclass(frozen=True)
class Method:
    """An algorithm and what it takes. Its options are the keyword-only arguments of `run`."""

    run: Callable[..., Found]
    orders: tuple[int, ...] = (3, 4)
    takes_implicit: bool = False
    keeps_order: bool = False

    @property
    def options(self) -> list[str]:
        """Names of the options of this method."""
        parameters = inspect.signature(self.run).parameters.values()
        return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


METHODS: dict[str, Method] = {
    "auto": Method(orthogonal_iteration, takes_implicit=True),
    "power": Method(power_method, takes_implicit=True, keeps_order=True),
    "power-stopping": Method(power_method_stopping, orders=(3,), keeps_order=True),
    "jennrich": Method(one_slice, takes_implicit=True),
    "joint": Method(joint_diagonalization),
    "svd": Method(flattening_svd),
}


@dataclass(frozen=True)
class Decomposer:
    """A method with options of its own: what estimators are given as `method` and `method_options`."""

    method: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, method: Any, options: Any = None) -> Decomposer:
        """Checked: the method exists and has these options."""
        given = {} if options is None else options
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise ValueError(f"method_options must be None or a mapping from names to values, got {options!r}.")
        _check_method(method, given)
        return cls(method, dict(given))


AUTO = Decomposer()


def decompose(
    tensor: ArrayLike | SymmetricTensor,
    rank: int | None = None,
    *,
    method: str = "auto",
    random_state: RandomState = None,
    **options: Any,
) -> Decomposition:
    """Decompose a symmetric tensor into orthonormal components: T = sum_j lambda_j v_j^(x p) + noise.

    Parameters
    ----------
    tensor : array (n, n, n) or (n, n, n, n), or SymmetricTensor
        Symmetric, of order 3 or 4. Implicit tensors go to the methods that only contract.
    rank : int, optional
        Number of components, at most n. None decides it: the components of a full decomposition that exceed the
        largest value which pure noise of the level left in the residual would show; the status says what was seen.
    method : str
        ``"auto"`` all components at once by orthogonal iteration; ``"power"`` Algorithm 1; ``"power-stopping"``
        Algorithm 2 (order 3); ``"jennrich"`` one random slice; ``"joint"`` joint diagonalization of several slices;
        ``"svd"`` of the flattening.
    random_state : int, Generator, RandomState or None
    **options
        Options of the method; an unknown one is an error. ``odeco.decomposition.METHODS[method].options`` lists them.

    Returns
    -------
    Decomposition
        Largest |eigenvalue| first; in the order of extraction for the power methods.

    Warns
    -----
    MomentWarning
        When the status is not "converged".
    """
    chosen = _check_method(method, options)
    symmetric = as_symmetric_tensor(tensor)
    _check_taken(chosen, method, symmetric)
    count = _check_rank(rank, symmetric.dimension)
    with single_threaded_blas():  # contractions of large tensors have threads of their own
        result = run_method(symmetric, count, method, as_generator(random_state), options)
    if not result.status.ok:
        warnings.warn(str(result.status), MomentWarning, stacklevel=2)
    return result


def run_decomposer(
    decomposer: Decomposer, tensor: SymmetricTensor, rank: int, rng: np.random.Generator, **preferred: Any
) -> Decomposition:
    """The decomposition of a model's tensor; `preferred` are options of "auto", unless others are given."""
    method = decomposer.method
    _check_taken(METHODS[method], method, tensor)
    options = {**(preferred if method == "auto" else {}), **decomposer.options}
    return run_method(tensor, rank, method, rng, options)


def run_method(
    tensor: SymmetricTensor, rank: int | None, method: str, rng: np.random.Generator, options: dict[str, Any]
) -> Decomposition:
    """`decompose` on validated arguments, without the warning: for callers that read the status themselves."""
    chosen = METHODS[method]
    norm = tensor.norm
    if norm == 0.0:
        return _zero_tensor(tensor, rank, method)
    if norm is not None and not np.isfinite(norm):
        raise ValueError(f"tensor must be finite, but its Frobenius norm is {norm}.")
    note = ""
    if rank is None:
        rank, note = _choose_rank(tensor, rng)
        if rank == 0:
            return _empty(tensor, method, Status(StatusCode.RANK_DEFICIENT, note, "More samples lower the noise."))
    result = finish(tensor, chosen.run(tensor, rank, rng, **options), method, keep_order=chosen.keeps_order)
    if note and result.status.ok:
        result = replace(result, status=replace(result.status, message=note))
    return result


def _choose_rank(tensor: SymmetricTensor, rng: np.random.Generator) -> tuple[int, str]:
    """Run the default method at full rank and count what stands above the noise."""
    norm, n = tensor.norm, tensor.dimension
    if norm is None:
        raise ValueError("rank must be given for an implicit tensor that does not know its Frobenius norm.")
    # Twice the usual number of iterations: columns of noise never settle and would run to any cap.
    full = orthogonal_iteration(tensor, n, rng, n_iter=15, tol=1e-3)
    mapped = tensor.power_map(full.vectors)
    values = np.einsum("ij,ij->j", full.vectors, mapped)
    residual = relative_residual(tensor, full.vectors, values, mapped)
    if not isinstance(tensor, ExplicitTensor):  # known to half the digits only: by cancellation
        residual = max(residual, float(np.sqrt(n * np.finfo(float).eps)))
    rank, threshold = rank_above_noise(values, residual, norm, n, tensor.order)
    return (
        rank,
        f"rank {rank} of at most {n}: eigenvalues above {threshold:.3g}, the largest that pure noise would show.",
    )


def _zero_tensor(tensor: SymmetricTensor, rank: int | None, method: str) -> Decomposition:
    if rank is not None:
        raise ValueError(f"tensor is zero: it has no components, but rank = {rank} was asked for.")
    return _empty(tensor, method, Status(StatusCode.CONVERGED, "the tensor is zero."))


def _empty(tensor: SymmetricTensor, method: str, status: Status) -> Decomposition:
    none = np.empty(0)
    residual = 0.0 if tensor.norm == 0.0 else 1.0
    return Decomposition(
        none, np.empty((tensor.dimension, 0)), residual, 0, status, Certificate(none, none), method, tensor.order
    )


def _check_method(method: str, options: Mapping[str, Any]) -> Method:
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(
            f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}.{_hint(method, METHODS)}"
        )
    chosen = METHODS[method]
    for name in options:
        if name not in chosen.options:
            known = ", ".join(chosen.options) or "none"
            raise ValueError(
                f"method {method!r} has no option {name!r}; its options: {known}.{_hint(name, chosen.options)}"
            )
    return chosen


def _hint(word: str, known: Any) -> str:
    close = get_close_matches(str(word), list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _check_taken(chosen: Method, method: str, tensor: SymmetricTensor) -> None:
    if tensor.order not in chosen.orders:
        raise ValueError(
            f"method {method!r} takes order {' and '.join(map(str, chosen.orders))}, got order {tensor.order}."
        )
    if not chosen.takes_implicit and not isinstance(tensor, ExplicitTensor):
        takers = ", ".join(repr(name) for name, m in METHODS.items() if m.takes_implicit)
        raise ValueError(f"method {method!r} needs an explicit array; implicit tensors go to {takers}.")


def _check_rank(rank: int | None, n: int) -> int | None:
    if rank is None:
        return None
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or not 1 <= rank <= n:
        raise ValueError(f"rank must be None or an integer between 1 and the dimension n = {n}, got {rank!r}.")
    return int(rank)
