"""Hidden Markov models of counts: Poisson observations (section 3.3.3 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from odeco._random import RandomState
from odeco.exceptions import MomentError
from odeco.fitting.free import Free
from odeco.models.hmm.feature_chain import Chain
from odeco.models.hmm.feature_estimator import FeatureHMM
from odeco.models.hmm.feature_theorem import StateMoments
from odeco.models.hmm.policy import POLICY
from odeco.moments.columns import Columns
from odeco.moments.sequence_features import FeatureBasis
from odeco.refinement.emissions_poisson import PoissonEmission
from odeco.sources.sequences import BATCH_STEPS, Sequences, column_bounds

Floats = NDArray[np.float64]

# Rows of counts that there could be, for each four steps: a table of all of them is then smaller than the data.
_TABLE = 8


class PoissonHMM(FeatureHMM):
    """A hidden Markov model whose observations are counts, independent Poisson in each column given the state.

    Parameters
    ----------
    n_components : int or "auto"
        Number of states k; "auto" lets the data choose it (`odeco.choose_components`).
    refine : {"auto", "baum-welch"} or None
        "auto" is Baum-Welch from the best of several starts, which `diagnostics_` names. None keeps the paper's pure
        estimate: Proposition 3.4, negative probabilities put on the simplex; `MomentError` where the data do not
        determine it.
    effort : {"auto", "quick", "thorough"}
        How long to look for a start: "quick" refines the theorem's estimate alone, "auto" compares a few candidates and
        moves the best, "thorough" many.
    method, method_options : str, mapping or None
        Method of `odeco.decompose`, and its options: for the paper's estimate, which is one of the starts as well.
    smoothing : float
        Pseudo-count added to each transition.
    max_iter, tol : int, float
        Passes of Baum-Welch over the data at most; gain in nats per step below which it ends.
    random_state : int, Generator, RandomState or None
    verbose : bool
        Say on stderr what a fit does: its passes over the data, the steps of its refinement, and how it ended.

    Attributes
    ----------
    startprob_ : (k,)
        With ``refine=None`` from the first steps of at least 10 sequences for each state; of fewer, the stationary
        distribution of `transmat_`.
    transmat_ : (k, k)
        Rows sum to 1, as in hmmlearn: the transpose of the paper's T.
    lambdas_ : (k, n_features)
        Rates.
    monitor_ : ConvergenceMonitor
    n_iter_ : int
    diagnostics_ : Diagnostics

    Notes
    -----
    NaN marks a missing count. Counts are integers; states come in order of their stationary probability.

    Examples
    --------
    >>> import numpy as np
    >>> from odeco import PoissonHMM
    >>> rng = np.random.default_rng(0)
    >>> busy = np.repeat(rng.random(100) < 0.4, 50)
    >>> x = rng.poisson(np.where(busy, 9.0, 3.0))[:, None]
    >>> PoissonHMM(2, random_state=0).fit(x).lambdas_.ravel().round().tolist()
    [3.0, 9.0]
    """

    lambdas_: Floats

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        refine: str | None = "auto",
        effort: str = "auto",
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        smoothing: float = 0.0,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.refine = refine
        self.effort = effort
        self.method = method
        self.method_options = method_options
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_hmmlearn(cls, peer: Any) -> Self:
        """A fitted model with the parameters of a fitted `hmmlearn.hmm.PoissonHMM`."""
        model = cls(peer.n_components)
        model.startprob_, model.transmat_ = np.array(peer.startprob_), np.array(peer.transmat_)
        model.lambdas_ = np.array(peer.lambdas_)
        model.n_features_in_ = model.lambdas_.shape[1]
        return model

    def to_hmmlearn(self) -> Any:
        """A fitted `hmmlearn.hmm.PoissonHMM` with these parameters (needs hmmlearn)."""
        from hmmlearn.hmm import PoissonHMM as Peer  # type: ignore[import-untyped]

        parameters = self._parameters()
        peer = Peer(self.n_components)
        peer.n_features = self.n_features_in_
        peer.startprob_, peer.transmat_ = parameters.startprob, parameters.transmat
        peer.lambdas_ = self.lambdas_
        return peer

    def _check_values(self, values: Floats) -> None:
        smallest = np.fmin.reduce(values, axis=None)
        if smallest < 0:
            raise ValueError(f"X must hold counts, found {smallest:g}: counts are not negative (NaN: missing).")

        def look(part: Floats) -> None:
            broken = part > np.floor(part)  # false where one is missing
            if broken.any():
                raise ValueError(f"X must hold counts, found {part[broken][0]:g}: use GaussianHMM for real numbers.")

        _in_blocks(lambda block: look(values[block]), len(values))

    def _packed(self, data: Sequences) -> Sequences:
        """Each distinct row of counts once, where few are distinct: its likelihood is then computed once a pass."""
        values = data.values
        sizes = 2 + np.nan_to_num(column_bounds(values)[1])  # counts from 0 on, and one for those that are missing
        if 4 * np.prod(sizes) > _TABLE * len(values):
            return data
        places = _Places(sizes.astype(np.int64))
        seen = np.zeros(places.n, dtype=bool)

        def see(block: slice) -> None:
            seen[places.of(values[block])] = True

        _in_blocks(see, len(values))
        distinct = np.flatnonzero(seen)
        if 4 * distinct.size > len(values):
            return data
        numbers = np.cumsum(seen) - 1
        codes = np.empty(len(values), dtype=np.min_scalar_type(distinct.size))

        def encode(block: slice) -> None:
            codes[block] = numbers[places.of(values[block])]

        _in_blocks(encode, len(values))
        return replace(data, values=places.rows(distinct), codes=codes)

    def _template(self, values: Floats, rng: np.random.Generator) -> PoissonEmission:
        mean = Columns.of(values).mean
        floor = 1e-10 * max(float(mean.max()), 1e-100)
        return PoissonEmission(np.tile(np.maximum(mean, floor), (self.n_components, 1)), floor)

    def _read_emission(self, moments: StateMoments, template: PoissonEmission) -> PoissonEmission:
        """Rates are conditional means."""
        if not (moments.means > 0).all():
            raise MomentError(
                f"the moments give a state a rate of {moments.means.min():.3g}, and rates are positive. Use more "
                "steps, fewer states, or refine='auto', which starts from less."
            )
        return replace(template, rates=moments.means)

    def _lifted(self, chain: Chain, basis: FeatureBasis, template: PoissonEmission) -> PoissonEmission:
        """Rates from E[y | h], y the standard coordinates of the features."""
        d = template.rates.shape[1]
        y = (basis.mean + (basis.lift @ chain.vectors[1:]).T)[:, :d]
        rates = basis.features.center + y / np.diagonal(basis.features.axes)
        return replace(
            template, rates=np.maximum(rates, np.maximum(POLICY.least_rate * template.rates, template.floor))
        )

    def _emission(self) -> PoissonEmission:
        return PoissonEmission(np.maximum(np.asarray(self.lambdas_, dtype=np.float64), 1e-300))

    def _set_emission(self, emission: PoissonEmission) -> None:
        self.lambdas_ = emission.rates

    def _free_emission(self) -> list[Free]:
        return [Free("lambdas_", "positive", self.lambdas_)]

    def _expected_observation(self, states: Floats) -> Floats:
        return states @ self.lambdas_


class _Places:
    """Rows of small counts as numbers, a digit for each column; the last of a column's `sizes` is for a missing one."""

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self.sizes, self.n = sizes, int(np.prod(sizes))

    def of(self, values: Floats) -> NDArray[np.intp]:
        digits = np.where(np.isnan(values), self.sizes - 1, values).astype(np.intp)
        return np.asarray(np.ravel_multi_index(tuple(digits.T), tuple(self.sizes)))

    def rows(self, places: NDArray[np.intp]) -> Floats:
        digits = np.stack(np.unravel_index(places, tuple(self.sizes)), axis=1)
        return np.where(digits == self.sizes - 1, np.nan, digits)


def _in_blocks(work: Callable[[slice], None], n: int) -> None:
    """Look at some of n steps at a time, on threads, so that nothing of the size of the data is made."""
    from odeco.kernels.threads import map_parts

    map_parts(lambda block: work(slice(block * BATCH_STEPS, (block + 1) * BATCH_STEPS)), -(-n // BATCH_STEPS))
