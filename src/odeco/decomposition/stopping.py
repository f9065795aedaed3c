"""``"power-stopping"``: the robust tensor power method with a stopping condition, Algorithm 2 (appendix C)."""

from __future__ import annotations

import numpy as np

from odeco.decomposition.finish import Found
from odeco.decomposition.options import check_count, check_shift
from odeco.decomposition.power import convergence, extract, power_updates, random_unit
from odeco.decomposition.result import Status, StatusCode
from odeco.tensors import Deflated, ExplicitTensor, SymmetricTensor
from odeco.tensors.algebra import Floats


def power_method_stopping(
    tensor: SymmetricTensor,
    rank: int,
    rng: np.random.Generator,
    *,
    n_iter: int = 30,
    max_restarts: int | None = None,
    shift: float = 0.0,
) -> Found:
    """Algorithm 2, called `rank` times with r = rank, rank - 1, ..., 1.

    A start is accepted when |T(theta, theta, theta)| >= max(||T||_F / (2 sqrt(r)), ||T(I, I, theta)||_F / 1.05), the
    condition of appendix C (section 5.2 prints 1 / sqrt(2 r)). Starts run in batches of growing size and the first
    accepted one of a batch is taken, which is what one after the other would give.

    Parameters
    ----------
    n_iter : int
        N of the paper.
    max_restarts : int, optional
        Cap on starts per component, default 10 n. Where it is reached the best start is used and the status says so.
    shift : float
        Adds shift * theta to every update (S-HOPM); 0 is the paper's.
    """
    check_count("n_iter", n_iter)
    check_shift(shift)
    cap = 10 * tensor.dimension if max_restarts is None else max_restarts
    check_count("max_restarts", cap)
    assert isinstance(tensor, ExplicitTensor)  # the door lets no other in: the condition needs Frobenius norms
    deflated = Deflated(tensor)
    exhausted: list[int] = []
    moved: list[float] = []
    for j in range(rank):
        theta, accepted = _accepted_start(deflated, rank - j, rng, n_iter, cap, shift)
        if not accepted:
            exhausted.append(j)
        vector = power_updates(deflated, theta[:, None], n_iter, shift)
        moved.append(extract(deflated, vector))
    status = _status(exhausted, cap) if exhausted else convergence(moved, n_iter)
    return Found(deflated.removed.vectors, 2 * n_iter, status, deflated.removed.weights)


def _accepted_start(
    deflated: Deflated, r: int, rng: np.random.Generator, n_iter: int, cap: int, shift: float
) -> tuple[Floats, bool]:
    """The first start that meets the condition, or the best of all that were tried."""
    floor = (deflated.norm or 0.0) / (2 * np.sqrt(r))
    tried, batch = 0, 1
    best, best_value = np.empty(0), -np.inf
    while tried < cap:
        batch = min(batch, cap - tried)
        theta = power_updates(deflated, random_unit(rng, deflated.dimension, batch), n_iter, shift)
        values = np.abs(deflated.values(theta))
        for i in range(batch):
            if values[i] >= floor and values[i] >= np.linalg.norm(deflated.matrix(theta[:, i])) / 1.05:
                return theta[:, i], True
        top = int(np.argmax(values))
        if values[top] > best_value:
            best, best_value = theta[:, top], float(values[top])
        tried, batch = tried + batch, min(2 * batch, 32)
    return best, False


def _status(exhausted: list[int], cap: int) -> Status:
    return Status(
        StatusCode.RESTARTS_EXHAUSTED,
        f"no start met the stopping condition within {cap} restarts for {len(exhausted)} components "
        f"(first: number {exhausted[0]}); their best starts were used.",
        "Either the tensor has more or fewer components than asked for (use rank=None), or the Frobenius norm of its "
        "noise is too large for Algorithm 2 (use method='auto' or 'power').",
    )
