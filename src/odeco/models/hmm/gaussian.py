"""Hidden Markov models with Gaussian observations (section 3.3.3 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from odeco._random import RandomState
from odeco.exceptions import MomentError
from odeco.families.gaussian import floored
from odeco.fitting.free import Free, covariance_ranges
from odeco.models.hmm.feature_chain import Chain
from odeco.models.hmm.feature_estimator import FeatureHMM
from odeco.models.hmm.feature_theorem import StateMoments
from odeco.models.hmm.policy import POLICY
from odeco.models.hmm.starts import within_deviations
from odeco.moments.columns import Columns
from odeco.moments.sequence_features import FeatureBasis
from odeco.refinement.emissions_gaussian import FAMILIES, GaussianEmission
from odeco.sources.scale import check_columns
from odeco.sources.sequences import column_bounds

Floats = NDArray[np.float64]


class GaussianHMM(FeatureHMM):
    """A hidden Markov model whose observations are Gaussian given the state.

    Moments of consecutive features (Proposition 3.4) give a start that needs no luck, also where states differ in
    their variances alone; where they do not show just k states, others compete with it. Baum-Welch finishes. One fit is
    enough: no restarts.

    Parameters
    ----------
    n_components : int or "auto"
        Number of states k; "auto" lets the data choose it (`odeco.choose_components`).
    covariance_type : {"spherical", "diag", "full", "tied"}
        One variance for each state; one for each state and column; a matrix for each state; one matrix for all.
    covars_prior : float
        Sum of squares, in units of each column's variance within a typical cluster, added to those of each state, as
        in hmmlearn (which has no units): a state of a few observations does not collapse on them.
    min_covar : float
        Least variance, in the same units; for matrices, in every direction. With it a state of many
        identical values has a finite likelihood; `diagnostics_` says where it binds. (In hmmlearn it acts on the start
        alone.)
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
    means_ : (k, n_features)
    covars_ : array
        (k,) spherical, (k, n_features) diag, (k, n_features, n_features) full, (n_features, n_features) tied: as
        hmmlearn documents and takes them (its own attribute reads back as matrices: see `covariance_matrices`).
    monitor_ : ConvergenceMonitor
    n_iter_ : int
    diagnostics_ : Diagnostics
        ``spectrum``: 1 and the correlations of the features of one step with those of the next.
        ``suggested_components``: the number of states with the least BIC on the way down from twice as many (see
        docs/hmm.md), None where it grows without end; of moments alone, the correlations beyond sampling error.

    Notes
    -----
    NaN marks what is missing: whole rows or single entries, exactly for every covariance type (the marginal of what
    is there; a full covariance fills in by conditional expectation in its M step). States come in order of their
    stationary probability.

    Examples
    --------
    >>> import numpy as np
    >>> from odeco import GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> calm = np.repeat(rng.random(100) < 0.6, 50)  # two states that differ in nothing but their variance
    >>> x = rng.standard_normal((5000, 1)) * np.where(calm, 1.0, 3.0)[:, None]
    >>> model = GaussianHMM(2, random_state=0).fit(x)
    >>> np.sqrt(model.covars_).ravel().round(1).tolist()
    [1.0, 3.0]
    """

    means_: Floats
    covars_: Floats

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        covariance_type: str = "diag",
        covars_prior: float = 1e-2,
        min_covar: float = 1e-6,
        refine: str | None = "auto",
        effort: str = "auto",
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        smoothing: float = 0.0,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.covars_prior = covars_prior
        self.min_covar = min_covar
        self.refine = refine
        self.effort = effort
        self.method = method
        self.method_options = method_options
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def covariance_matrices(self) -> Floats:
        """Covariances as matrices (k, n_features, n_features) for every type: what hmmlearn's `covars_` reads as."""
        k, d = self.means_.shape
        covars = np.asarray(self.covars_)
        if self.covariance_type == "full":
            return covars
        if self.covariance_type == "tied":
            return np.repeat(covars[None], k, axis=0)
        return np.asarray(covars.reshape(k, -1, 1) * np.eye(d))

    @classmethod
    def from_hmmlearn(cls, peer: Any) -> Self:
        """A fitted model with the parameters of a fitted `hmmlearn.hmm.GaussianHMM`."""
        model = cls(peer.n_components, covariance_type=peer.covariance_type)
        model.startprob_, model.transmat_ = np.array(peer.startprob_), np.array(peer.transmat_)
        model.means_, model.covars_ = np.array(peer.means_), np.array(peer._covars_)
        if peer.covariance_type == "spherical" and model.covars_.ndim == 2:  # hmmlearn's fit repeats them per feature
            model.covars_ = model.covars_[:, 0].copy()
        model.n_features_in_ = model.means_.shape[1]
        return model

    def to_hmmlearn(self) -> Any:
        """A fitted `hmmlearn.hmm.GaussianHMM` with these parameters (needs hmmlearn)."""
        from hmmlearn.hmm import GaussianHMM as Peer  # type: ignore[import-untyped]

        parameters = self._parameters()
        peer = Peer(self.n_components, covariance_type=self.covariance_type)
        peer.n_features = self.n_features_in_
        peer.startprob_, peer.transmat_ = parameters.startprob, parameters.transmat
        peer.means_, peer.covars_ = self.means_, self.covars_
        return peer

    def _check_options(self) -> None:
        super()._check_options()
        if self.covariance_type not in FAMILIES:
            raise ValueError(f"covariance_type must be one of {sorted(FAMILIES)}, got {self.covariance_type!r}.")
        if not 0 <= self.covars_prior < np.inf:
            raise ValueError(f"covars_prior must be 0 or a positive number, got {self.covars_prior!r}.")
        if not 0 < self.min_covar < 1:
            raise ValueError(
                f"min_covar must be between 0 and 1 (in units of the variance within clusters), got {self.min_covar!r}."
            )

    def _correlated(self) -> bool:
        return self.covariance_type in ("full", "tied")

    def _template(self, values: Floats, rng: np.random.Generator) -> GaussianEmission:
        low, high = column_bounds(values)
        check_columns(np.maximum(np.abs(low), np.abs(high)))
        columns, k = Columns.of(values), self.n_components
        center, scale = columns.mean, within_deviations(values, columns, k, rng)
        shapes = {"spherical": np.full(k, np.mean(scale**2)), "diag": np.tile(scale**2, (k, 1))}
        matrix = np.diag(scale**2)
        shapes |= {"full": np.tile(matrix, (k, 1, 1)), "tied": matrix}
        return FAMILIES[self.covariance_type](
            np.tile(center, (k, 1)),
            shapes[self.covariance_type],
            center,
            scale,
            self.min_covar,
            self.covars_prior,
        )

    def _read_emission(self, moments: StateMoments, template: GaussianEmission) -> GaussianEmission:
        """Means and covariances, E[xx'|h] - E[x|h] E[x|h]', as they are."""
        kind, first, second = self.covariance_type, moments.first, moments.second
        if self._correlated():
            products = first[:, :, None] * first[:, None, :]
            covars = second.reshape(products.shape) - products  # one column has squares alone
        else:
            covars = second - first**2
        if kind == "spherical":
            covars = covars.mean(axis=1)
        elif kind == "tied":
            covars = np.tensordot(moments.weights, covars, 1)
        least = np.linalg.eigvalsh(covars)[..., 0] if self._correlated() else covars
        if not (least > 0).all():
            raise MomentError(
                f"the moments give a variance of {least.min():.3g}, and variances are positive. Use more steps, fewer "
                "states, or refine='auto', which starts from less."
            )
        return replace(template, means=moments.means, covars=covars)

    def _lifted(self, chain: Chain, basis: FeatureBasis, template: GaussianEmission) -> GaussianEmission:
        """Means and covariances from E[y | h] and E[y y' | h], y the standard coordinates of the features."""
        features, d = basis.features, template.means.shape[1]
        conditional = basis.mean + (basis.lift @ chain.vectors[1:]).T
        y = np.clip(conditional[:, :d], -POLICY.farthest, POLICY.farthest)
        variances = np.clip(conditional[:, d : 2 * d] - y**2, *POLICY.start_variances)
        back = np.linalg.inv(features.axes)
        means = features.center + y @ back
        if self.covariance_type == "diag":
            return replace(template, means=means, covars=variances * np.diagonal(back) ** 2)
        if self.covariance_type == "spherical":
            return replace(template, means=means, covars=(variances * np.diagonal(back) ** 2).mean(axis=1))
        matrices = variances[:, :, None] * np.eye(d)
        first, second = features.products.T
        crossed = conditional[:, 2 * d : 2 * d + len(first)] - y[:, first] * y[:, second]
        matrices[:, first, second] = matrices[:, second, first] = crossed
        lifted = back.T @ floored(matrices, np.full(d, POLICY.start_variances[0])) @ back
        if self.covariance_type == "tied":
            lifted = np.einsum("j,jab->ab", chain.joint.sum(axis=1), lifted)
        return replace(template, means=means, covars=lifted)

    def _emission(self) -> GaussianEmission:
        means = np.asarray(self.means_, dtype=np.float64)
        center = means.mean(axis=0)
        covars = np.asarray(self.covars_, dtype=np.float64)
        return FAMILIES[self.covariance_type](means, covars, center, np.ones_like(center), self.min_covar)

    def _set_emission(self, emission: GaussianEmission) -> None:
        self.means_, self.covars_ = emission.means, emission.covars

    def _ranges(self) -> dict[str, Any]:
        return {"covars_": covariance_ranges(self.covars_, is_matrix=self._correlated())}

    def _free_emission(self) -> list[Free]:
        values = np.asarray(self.covars_, dtype=np.float64)
        scale = np.sqrt(np.diagonal(self.covariance_matrices(), axis1=1, axis2=2))
        kind, axis = "covariance" if self._correlated() else "positive", None if self.covariance_type == "tied" else 0
        return [Free("means_", "real", self.means_, scale=scale), Free("covars_", kind, values, axis)]

    def _expected_observation(self, states: Floats) -> Floats:
        return states @ self.means_

    def _advice_on(self, emission: GaussianEmission) -> tuple[str, ...]:
        on_floor = emission.on_floor(POLICY.near_floor)
        if not on_floor.any():
            return ()
        return (
            f"states {np.flatnonzero(on_floor).tolist()} are on the least variance that min_covar={self.min_covar:g} "
            "allows: observations repeat the same value, or columns are constant or depend on each other. Their "
            "likelihood means little; raise min_covar, lower n_components or leave such columns out.",
        )
