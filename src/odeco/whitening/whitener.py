"""The whitening map and its lift (section 4.3 of the paper), from an explicit second moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.exceptions import MomentError

FloatArray = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Whitener:
    """A whitening map ``W`` with ``W^T M2 W = I``, and the lift that undoes it.

    The two are kept together, so that whitening and lifting back cannot drift apart:
    ``matrix.T @ lift`` is always the identity.

    Attributes
    ----------
    matrix : (d, k) array
        ``W``.
    lift : (d, k) array
        ``B = M2 W``, the right inverse of ``W^T`` with the range of M2. Without a scale it is the
        Moore-Penrose pseudoinverse of ``W^T`` (Theorem 4.3).
    spectrum : (m,) array, m >= k
        All computed eigenvalues of M2 (of the scaled M2 where a scale was used), descending.
    """

    matrix: FloatArray = field(repr=False)
    lift: FloatArray = field(repr=False)
    spectrum: FloatArray = field(repr=False)

    @classmethod
    def of_eigenpairs(cls, values: FloatArray, vectors: FloatArray, spectrum: FloatArray) -> Whitener:
        """``W = U D^(-1/2)`` and ``B = U D^(1/2)``, from k positive eigenvalues (k,) and eigenvectors (d, k)."""
        roots = np.sqrt(values)
        return cls(vectors / roots, vectors * roots, spectrum)

    @property
    def n_features(self) -> int:
        """The dimension d before whitening."""
        return int(self.matrix.shape[0])

    @property
    def n_components(self) -> int:
        """The dimension k after whitening."""
        return int(self.matrix.shape[1])

    @property
    def gap(self) -> float:
        """``1 - max |lambda_j| / lambda_k`` over the discarded j > k: 1 is a clean rank k, 0 no gap."""
        k = self.n_components
        discarded = np.abs(self.spectrum[k:]).max(initial=0.0)
        return float(1.0 - discarded / self.spectrum[k - 1])

    @property
    def condition(self) -> float:
        """``lambda_1 / lambda_k``."""
        return float(self.spectrum[0] / self.spectrum[self.n_components - 1])

    def leading(self, n_components: int) -> Whitener:
        """The whitener of the first directions alone."""
        return Whitener(self.matrix[:, :n_components], self.lift[:, :n_components], self.spectrum)

    def whiten(self, X: Any) -> FloatArray:
        """Map rows to the whitened space: ``X @ W`` for dense or sparse ``X`` of shape (n, d)."""
        rows = X if hasattr(X, "shape") else np.asarray(X)
        if len(rows.shape) != 2 or rows.shape[1] != self.n_features:
            raise ValueError(f"X must have shape (n, {self.n_features}), got {tuple(rows.shape)}.")
        return np.asarray(rows @ self.matrix)

    def whiten_tensor(self, tensor: ArrayLike) -> FloatArray:
        """The multilinear map ``M3(W, W, W)``, or ``M4(W, W, W, W)`` (section 4.3)."""
        moments = np.asarray(tensor)
        if moments.ndim not in (3, 4) or moments.shape != (self.n_features,) * moments.ndim:
            raise ValueError(
                f"tensor must be cubic of order 3 or 4 and side {self.n_features}, got shape {moments.shape}."
            )
        # Each product contracts the leading axis and appends the new one: after `order` turns all are done.
        for _ in range(moments.ndim):
            rest = moments.shape[1:]
            moments = (moments.reshape(self.n_features, -1).T @ self.matrix).reshape(*rest, -1)
        return moments

    def unwhiten(self, V: ArrayLike) -> FloatArray:
        """Lift columns of the whitened space back: ``B @ V`` for ``V`` of shape (k,) or (k, r)."""
        vectors = np.asarray(V)
        if vectors.ndim not in (1, 2) or vectors.shape[0] != self.n_components:
            raise ValueError(f"V must have {self.n_components} rows, got shape {vectors.shape}.")
        return np.asarray(self.lift @ vectors)

    def compose(self, inner: Whitener) -> Whitener:
        """Whiten with this map first and with ``inner``, a whitener of the k-dimensional space, next.

        The spectrum is that of the inner map: eigenvalues in units of this one.
        """
        if inner.n_features != self.n_components:
            raise ValueError(f"inner must whiten dimension {self.n_components}, got {inner.n_features}.")
        return Whitener(self.matrix @ inner.matrix, self.lift @ inner.lift, inner.spectrum)

    def __repr__(self) -> str:
        return f"Whitener({self.n_features} -> {self.n_components}, gap={self.gap:.3g}, condition={self.condition:.3g})"


def whiten(M2: ArrayLike, n_components: int, *, scale: ArrayLike | None = None) -> Whitener:
    """Whiten an explicit symmetric second moment (section 4.3 of the paper).

    ``W = U D^(-1/2)`` from the top eigenpairs of M2. Eigenvalues, not singular values, are used, so that
    an indefinite M2 is seen. Negative eigenvalues are accepted as sampling noise while they stay below
    the k-th eigenvalue in magnitude.

    Parameters
    ----------
    M2 : (d, d) array
        Symmetric.
    n_components : int
        k, the number of components; M2 must have at least k positive eigenvalues.
    scale : (d,) array of non-negative numbers, optional
        Eigenvectors are taken of ``diag(scale) M2 diag(scale)`` instead; ``W^T M2 W = I`` holds all the same.
        Coordinates of scale 0 are left out of W and lifted to 0.
    """
    moment = _check_second_moment(M2)
    n_features = moment.shape[0]
    check_n_components(n_components, n_features)
    factors = _check_scale(scale, n_features)
    eps = float(np.finfo(moment.dtype).eps)
    moment = moment.astype(np.float64)
    eigenvalues, eigenvectors = np.linalg.eigh(moment * factors[:, None] * factors)
    eigenvalues, eigenvectors = eigenvalues[::-1], eigenvectors[:, ::-1]
    check_spectrum(eigenvalues, n_components, tolerance=n_features * eps)
    top, roots = eigenvectors[:, :n_components], np.sqrt(eigenvalues[:n_components])
    matrix = factors[:, None] * top / roots
    lift = top * roots / np.where(factors > 0, factors, np.inf)[:, None]
    return Whitener(matrix, lift, eigenvalues.copy())


def check_n_components(n_components: int, n_features: int) -> None:
    """Raise unless ``1 <= n_components <= n_features``."""
    if isinstance(n_components, bool) or not isinstance(n_components, (int, np.integer)) or n_components < 1:
        raise ValueError(f"n_components must be a positive integer, got {n_components!r}.")
    if n_components > n_features:
        raise ValueError(
            f"n_components={n_components} is larger than the number of features {n_features}: whitening "
            "needs linearly independent components (Condition 4.1 of the paper). Lower n_components."
        )


def check_spectrum(
    eigenvalues: FloatArray, n_components: int, *, tolerance: float, allow_indefinite: bool = False
) -> None:
    """Raise unless the first k eigenvalues (descending) are positive and outweigh the negative ones.

    ``tolerance`` is the rounding level relative to the first eigenvalue (d times machine epsilon). With
    ``allow_indefinite`` large negative eigenvalues pass: estimators on real data report them instead, for real
    documents are never quite exchangeable.
    """
    kth, lowest = float(eigenvalues[n_components - 1]), float(eigenvalues[-1])
    floor = tolerance * max(float(eigenvalues[0]), 0.0)
    rank = int(np.sum(eigenvalues > max(floor, -lowest)))
    if kth <= floor:
        raise MomentError(
            f"M2 has rank {int(np.sum(eigenvalues > floor))}, below n_components={n_components} (eigenvalue "
            f"{n_components} is {kth:.3g}). {_describe(eigenvalues, n_components)} "
            f"Lower n_components{f' to {rank} or less' if rank else ''}, or check that M2 is a second moment."
        )
    if -lowest >= kth and not allow_indefinite:
        raise MomentError(
            f"M2 is indefinite: its lowest eigenvalue {lowest:.3g} is as large in magnitude as eigenvalue "
            f"{n_components}, {kth:.3g}. {_describe(eigenvalues, n_components)} "
            f"{f'Lower n_components to {rank} or less' if rank else 'Check the sign of M2'}, use more data, "
            "or check the correction subtracted from M2 (alpha0, noise variance)."
        )


def _describe(eigenvalues: FloatArray, n_components: int) -> str:
    """The spectrum around ``n_components`` and its lower end, as text."""
    shown = eigenvalues[: n_components + 3]
    text = np.array2string(shown, precision=3, threshold=40, max_line_width=10_000)
    rest = eigenvalues[len(shown) :]
    end = f", then {len(rest)} more down to {rest[-1]:.3g}" if len(rest) else ""
    return f"Spectrum, largest first: {text}{end}."


def _check_second_moment(M2: ArrayLike) -> FloatArray:
    """Return M2 as a symmetric float array."""
    moment = np.asarray(M2)
    if moment.ndim != 2 or moment.shape[0] != moment.shape[1] or moment.size == 0:
        raise ValueError(f"M2 must be a square matrix, got shape {moment.shape}.")
    if moment.dtype.kind not in "biuf":
        raise ValueError(f"M2 must be real, got dtype {moment.dtype}.")
    if moment.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        moment = moment.astype(np.float64)
    if not np.isfinite(moment).all():
        raise ValueError("M2 has NaN or infinite entries: remove them from the data first.")
    asymmetry, size = np.abs(moment - moment.T).max(), np.abs(moment).max()
    # Half of the digits: far above the rounding of any sum of outer products, far below a wrong matrix.
    if asymmetry > np.sqrt(np.finfo(moment.dtype).eps) * size:
        raise ValueError(
            f"M2 must be symmetric, found |M2 - M2^T| = {asymmetry:.3g} against |M2| = {size:.3g}: "
            "pass (M2 + M2.T) / 2 if that is what you mean."
        )
    return np.asarray((moment + moment.T) / 2)


def _check_scale(scale: ArrayLike | None, n_features: int) -> NDArray[np.float64]:
    """Return the scale as a float vector, ones by default."""
    if scale is None:
        return np.ones(n_features)
    factors = np.asarray(scale, dtype=np.float64)
    if factors.shape != (n_features,):
        raise ValueError(f"scale must have shape ({n_features},), got {factors.shape}.")
    if not np.isfinite(factors).all() or (factors < 0).any():
        raise ValueError("scale must be finite and non-negative.")
    return factors
