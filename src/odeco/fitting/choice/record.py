"""What is known of each number of components, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.card import resolve

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks for one number of components. NaN, or None, is what the model or the rows could not tell.

    Attributes
    ----------
    n_components : int
    eigenvalue : float
        The one of this number, largest first, of the second moment at the largest number that was tried.
    above_noise : bool or None
        Whether it stands out from sampling noise.
    replication : float
        How much two fits to two halves of the rows agree on the component that they agree on least: 1 fully, 0 not.
    held_out : float
        Mean log-likelihood of a row (a word, a step) of one half under the fit to the other, both ways.
    held_out_error : float
        Its standard error.
    log_likelihood : float
        Of all rows under the fit to all rows.
    n_parameters : int or None
        Free parameters.
    bic, icl : float
        Bayes' criterion, and the same with every row in its likeliest component: smaller is better.
    marginal : float
        Where a model can tell the price of its parameters better than by counting them: -2 log-likelihood with the
        parameters integrated out (Cheeseman and Stutz 1996), on the scale of BIC.
    seconds : float
        That it took.
    note : str
        Why there is nothing to tell, where that is so.
    """

    n_components: int
    eigenvalue: float = float("nan")
    above_noise: bool | None = None
    replication: float = float("nan")
    held_out: float = float("nan")
    held_out_error: float = float("nan")
    log_likelihood: float = float("nan")
    n_parameters: int | None = None
    bic: float = float("nan")
    icl: float = float("nan")
    marginal: float = float("nan")
    seconds: float = 0.0
    note: str = ""
    blocks: Floats = field(default_factory=lambda: np.zeros((0, 2)), repr=False)  # held-out sums and sizes

    def as_dict(self) -> dict[str, Any]:
        """The row of a table."""
        return {name: value for name, value in asdict(self).items() if name != "blocks"}


COLUMNS = tuple(each.name for each in fields(Evidence) if each.name != "blocks")


@dataclass(frozen=True, eq=False)
class Choice:
    """A number of components, and why.

    Attributes
    ----------
    best : int
        The number.
    reason : str
        One sentence.
    plausible : tuple of int
        Numbers that the evidence does not tell from the best, which is among them.
    criterion : str
        What decided: "bic", "icl", "marginal", "held_out", "replication" or "spectrum".
    table : tuple of Evidence
        One for each number that was looked at, ascending.
    open_ended : bool
        Whether the largest number that was tried may be the best, and there could be more.

    Examples
    --------
    >>> import odeco
    >>> means = [[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]]
    >>> x = odeco.simulate.gaussian_mixture(600, means, [0.5, 0.3, 0.2], random_state=0).rows
    >>> choice = odeco.choose_components(odeco.GaussianMixture(random_state=0), x, range(1, 6))
    >>> choice.best, choice.plausible
    (3, (3,))
    >>> choice.reason.startswith("BIC is least at 3 components")
    True
    """

    best: int
    reason: str
    plausible: tuple[int, ...]
    criterion: str
    table: tuple[Evidence, ...] = field(repr=False)
    open_ended: bool = False

    def __iter__(self) -> Iterator[Evidence]:
        return iter(self.table)

    @property
    def is_clear(self) -> bool:
        """Whether the evidence singles out one number."""
        return len(self.plausible) == 1

    def evidence(self, n_components: int) -> Evidence:
        """What speaks for one of the numbers."""
        for row in self.table:
            if row.n_components == n_components:
                return row
        tried = ", ".join(str(row.n_components) for row in self.table)
        raise ValueError(f"n_components={n_components!r} was not looked at: {tried} were.")

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, a row for each number."""
        import pandas as pd

        return pd.DataFrame([row.as_dict() for row in self.table], columns=list(COLUMNS)).set_index("n_components")

    def plot(self, ax: Any = None) -> Any:
        """Draw what decided against the number of components; needs matplotlib. Returns the axes."""
        return resolve("odeco.plots.draw_choice:plot_choice")(self, ax=ax)

    def __str__(self) -> str:
        return self.reason
