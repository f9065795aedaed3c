"""What a decomposition returns: eigenpairs, and what is known of how far to trust them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from odeco.tensors import rank_one_sum
from odeco.tensors.algebra import Floats


class StatusCode(StrEnum):
    """How a decomposition ended, best first."""

    CONVERGED = "converged"
    UNCERTIFIED = "uncertified"
    EQUAL_SINGULAR_VALUES = "equal singular values"
    RESTARTS_EXHAUSTED = "restarts exhausted"
    NOT_CONVERGED = "not converged"
    RANK_DEFICIENT = "rank deficient"


@dataclass(frozen=True)
class Status:
    """A code, what was seen in plain words, and what to change (empty where nothing needs to change)."""

    code: StatusCode
    message: str = ""
    advice: str = ""

    @property
    def ok(self) -> bool:
        """Whether the answer can be trusted as it is."""
        return self.code is StatusCode.CONVERGED

    def __str__(self) -> str:
        return " ".join(part for part in (f"{self.code.value}:", self.message, self.advice) if part).rstrip(":")


@dataclass(frozen=True)
class Certificate:
    """A check of every component after the fact, from the tensor alone.

    Attributes
    ----------
    residuals : (r,)
        ||T(I, v, ..) - lambda v|| / |lambda|: 0 for an eigenvector.
    contraction : (r,)
        (p - 1) ||P T(I, I, v, ..) P|| / |lambda| with P = I - v v': the rate at which the power map contracts towards
        v. Below 1 the eigenvector is robust (Theorem 4.1) and an isolated local maximizer of |T(u, .., u)|
        (Theorem 4.2). Frobenius norms are used where they already decide, spectral norms elsewhere; NaN for implicit
        tensors, where it is not measured.
    """

    residuals: Floats
    contraction: Floats

    @property
    def accepted(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Components with a residual below 1/2 and, where it was measured, a contraction below 1."""
        return np.asarray((self.residuals < 0.5) & ~(self.contraction >= 1.0))


@dataclass(frozen=True)
class Decomposition:
    """T = sum_j eigenvalues[j] * eigenvectors[:, j]^(x order), approximately.

    Attributes
    ----------
    eigenvalues : (r,)
        T(v, .., v), of the deflated tensor for the power methods. Positive at order 3 (the sign moves into the
        vector), of either sign at order 4.
    eigenvectors : (n, r)
        Unit columns.
    residual : float
        ||T - sum|| / ||T|| in the Frobenius norm; NaN where an implicit tensor does not know its norm.
    n_iter : int
        Iterations used: of the whole frame, of each power run, or sweeps, by method.
    status : Status
    certificate : Certificate
    method : str
    order : int
    """

    eigenvalues: Floats
    eigenvectors: Floats
    residual: float
    n_iter: int
    status: Status
    certificate: Certificate
    method: str
    order: int

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self.eigenvalues.size)

    def reconstruct(self) -> Floats:
        """The explicit tensor sum_j lambda_j v_j^(x order)."""
        return rank_one_sum(self.eigenvalues, self.eigenvectors, self.order)

    def take(self, indices: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Decomposition:
        """The same decomposition with its components in another order."""
        certificate = Certificate(self.certificate.residuals[indices], self.certificate.contraction[indices])
        return replace(
            self,
            eigenvalues=self.eigenvalues[indices],
            eigenvectors=self.eigenvectors[:, indices],
            certificate=certificate,
        )

    def sorted(self) -> Decomposition:
        """Largest |eigenvalue| first. The power methods return components in the order they were found."""
        return self.take(np.argsort(-np.abs(self.eigenvalues), kind="stable"))

    def __repr__(self) -> str:
        n = self.eigenvectors.shape[0]
        trusted = int(np.count_nonzero(self.certificate.accepted))
        lines = [
            f"Decomposition of an order {self.order} tensor of dimension {n} by {self.method!r}",
            f"  components   {self.rank} ({trusted} certified)",
            f"  eigenvalues  {_shorten(self.eigenvalues)}",
            f"  residual     {self.residual:.3g} of the tensor's norm",
            f"  contraction  {_worst(self.certificate.contraction)} (robust below 1)",
            f"  iterations   {self.n_iter}",
            f"  status       {self.status}",
        ]
        return "\n".join(lines)


def _shorten(values: Floats) -> str:
    shown = [f"{v:.4g}" for v in values]
    return ", ".join(shown if len(shown) <= 8 else [*shown[:5], "...", *shown[-2:]]) or "none"


def _worst(values: Floats) -> str:
    known = values[~np.isnan(values)]
    return f"at most {known.max():.3g}" if known.size else "not measured"
