"""Gaussian mixtures by moments and a few likelihood steps (Theorems 3.2 and 3.3, sections 3.3.1 and 3.3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState
from odeco.diagnostics import Diagnostics, without_moments
from odeco.families.gaussian import COVARIANCES
from odeco.fitting.candidates import check_effort
from odeco.fitting.estimator import Found, vector_chunks
from odeco.fitting.free import Free, covariance_ranges
from odeco.fitting.stream import StreamPlan
from odeco.models.gaussian_mixture.passes import (
    SPHERICAL,
    GaussianMoments,
    Options,
    gaussian_passes,
    gaussian_plan,
    stream_moments,
)
from odeco.models.gaussian_mixture.policy import POLICY
from odeco.models.gaussian_mixture.refine import Refined, climbed, describe, refine
from odeco.models.gaussian_mixture.theorem import Start, estimate, indifferent, stream_advice
from odeco.models.mixture_base import (
    MixtureEstimator,
    check_choice,
    check_enough,
    check_integer,
    check_number,
)
from odeco.moments.passes import Passes
from odeco.refinement.gaussian_mixture import COVARIANCE_TYPES, GaussianParameters, Points, log_joint, n_parameters
from odeco.refinement.loop import StoppingRule, Trace
from odeco.sources.dense import DenseBatch, DenseSource, batches_of
from odeco.sources.rows import TableChunk, TablePiece
from odeco.sources.values import weight_array

Floats = NDArray[np.float64]

_ROUTES = ("auto", "moments", "views")
_REFINE = ("auto", "em", "one-step", None)


def _keeps_moments(mixture: GaussianMixture) -> bool:
    if mixture.route != "views":
        return True
    raise AttributeError(
        f"partial_fit does not keep the moments of three views: use route='auto' or 'moments', got {mixture.route!r}."
    )


class GaussianMixture(MixtureEstimator):
    """A mixture of Gaussians: one moment estimate instead of many starts, polished by EM.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components k; "auto" lets the data choose it (`odeco.choose_components`).
    covariance_type : {"spherical", "tied_spherical", "diag", "full", "tied"}
        "spherical": a variance per component (Theorem 3.3). "tied_spherical": one variance for all (Theorem 3.2).
        "diag": a variance per component and column, as a product mixture (section 3.3.1). "full", "tied": these two
        have no moment estimate here; EM starts from the spherical one, and `diagnostics_.method` says so.
    method, method_options : str, mapping or None
        The decomposer of the moment tensor, any method of `odeco.decompose`, and its options.
    route : {"auto", "moments", "views"}
        From the data to that tensor. "moments": the theorems in affine form, for n_features >= n_components. "views":
        three views by a random rotation (section 3.3.2), for n_features >= 3 n_components and spheres; correct and far
        less precise. "auto": moments; where they are doubtful, and on small data, one of several candidates.
    refine : {"auto", "em", "one-step"} or None
        "auto", "em": EM to convergence. "one-step": one scoring step on the likelihood (the paper's introduction).
        None: the paper's pure moment estimate.
    effort : {"auto", "quick", "thorough"}
        How long to look for a start: "quick" refines the theorem's estimate alone, "auto" compares a few candidates and
        moves the best, "thorough" many.
    max_iter, tol : int, float
        EM steps at most; gain of the mean log-likelihood per sample below which they stop.
    variance_floor : float
        Variances are kept above this share of the data's (column by column for "diag").
    random_state : int, Generator, RandomState or None
    verbose : bool
        Say on stderr what a fit does: its passes over the data, the steps of its refinement, and how it ended.

    Attributes
    ----------
    weights_ : (k,)
        Largest first.
    means_ : (k, n_features)
    covariances_ : (k,), float, (k, n_features), (k, n_features, n_features) or (n_features, n_features)
        In the order of the covariance types above.
    n_iter_ : int
        EM steps taken.
    converged_ : bool
        Whether the last gain was below tol.
    lower_bound_ : float
        Mean log-likelihood per training sample before the last EM step; NaN where none was taken.
    diagnostics_ : Diagnostics
        ``details``: "noise_variance", "starts" (name and likelihood of each, where several were compared),
        "coherence" (``route="views"``), "refinement" (a trace per stage of EM), "replicated", "spread" and "moves" (see
        docs/mixtures.md), "searched_rows" (that starts were compared on, of rows elsewhere), "moments" (why they gave
        none), "step_share" (of a scoring step, 1 unless it had to be shortened).
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from odeco import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[0.0, 0, 0, 0], [4, 0, 0, 0], [0, 4, 0, 0]])
    >>> x = centres[rng.choice(3, 3000, p=[0.5, 0.3, 0.2])] + rng.standard_normal((3000, 4))
    >>> mixture = GaussianMixture(3, random_state=0).fit(x)
    >>> mixture.weights_.round(1).tolist()
    [0.5, 0.3, 0.2]
    >>> np.abs(mixture.means_ - centres).max().round(1)
    np.float64(0.1)
    """

    _stream_options = ("n_components", "covariance_type")

    def __init__(
        self,
        n_components: int | str = 1,
        covariance_type: str = "spherical",
        *,
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        route: str = "auto",
        refine: str | None = "auto",
        effort: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        variance_floor: float = 1e-6,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.method = method
        self.method_options = method_options
        self.route = route
        self.refine = refine
        self.effort = effort
        self.max_iter = max_iter
        self.tol = tol
        self.variance_floor = variance_floor
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X : (n_samples, n_features) array or DataFrame, or batches of one
            Batches: a list of arrays, a function that returns a new iterator over arrays, or a `DenseSource`; read
            twice, and once more for every full EM step. float32 stays float32.
        y : ignored
        sample_weight : (n_samples,) array, optional
            A weight of 2 is the same as two equal rows.
        """
        return self._fit(X, sample_weight=sample_weight)

    @available_if(_keeps_moments)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add a chunk of samples and fit to all seen so far (since the first call, or the first after `fit`).

        One pass and bounded memory: only moments are kept, so the result does not depend on the chunks, and it is the
        moment estimate without likelihood steps, whatever `refine` says. The basis is learned from the first
        max(5000, 20 n_features) samples ("diag": 5000). "full" and "tied" have no moment estimate: they get spheres,
        and a warning once the basis is learned.
        """
        return self._partial_fit(X, sample_weight=sample_weight)

    # The parts of the flow.

    def _open(self, X: Any, sample_weight: ArrayLike | None = None) -> DenseSource:
        source: DenseSource = super()._open(X, sample_weight)
        if sample_weight is not None:  # as many rows as their repetitions would be, or as have any weight
            weights = weight_array(sample_weight)
            check_enough(max(int(np.count_nonzero(weights)), int(weights.sum())), self.n_components)
        if not source.holds_rows and self.n_components > 1 and (self.route == "views" or self.refine == "one-step"):
            asked = "route='views'" if self.route == "views" else "refine='one-step'"
            raise ValueError(f"{asked} needs the rows in memory: these are elsewhere or out of core. Use the defaults.")
        return source

    def _chunks(
        self, X: Any, *, reset: bool, sample_weight: ArrayLike | None = None
    ) -> Iterator[DenseBatch | TableChunk]:
        return map(self._chunk_of, vector_chunks(self, X, sample_weight, reset=reset))

    def _chunk_of(self, batch: DenseBatch) -> DenseBatch | TableChunk:
        diagonal = self.covariance_type == "diag"
        return TableChunk((TablePiece(batch.rows.astype(np.float64), batch.weights),)) if diagonal else batch

    def _plan(self) -> StreamPlan[Any, Any]:
        return gaussian_plan(self.n_features_in_, self._options())

    def _passes(self, source: DenseSource, rng: np.random.Generator) -> Passes[GaussianMoments]:
        return gaussian_passes(source, self._options(), rng)

    def _narrowed(self, moments: GaussianMoments, n_components: int) -> GaussianMoments | None:
        return moments.narrowed(n_components)

    def _stream_moments(self, kept: None, rng: np.random.Generator) -> GaussianMoments:
        return stream_moments(self._stream, self._plan(), self._options(), rng)

    def _warns(self) -> bool:
        """Not as long as rows are held: more of them will come."""
        return self._stream.started and getattr(self._stream.sums, "distinct", None) is None

    def _theorem(self, moments: GaussianMoments, rng: np.random.Generator) -> Start:
        return estimate(moments, self._options(), rng)

    def _refine(self, found: Found, rng: np.random.Generator) -> Refined | None:
        if self.n_components == 1:
            return None
        return refine(found.rows, found.moments, found.estimate, found.error, self._options(), rng)

    def _conclude(self, found: Found, refined: Refined | None) -> Diagnostics:
        done = Refined(found.estimate.parameters, found.estimate) if refined is None else refined
        self._learn(done.parameters.shifted(found.moments.mean), done.traces)
        advice = stream_advice(found.moments, self.covariance_type) if found.rows is None else ()
        return describe(found.moments, done, self._options(), advice)

    def _wait(self, found: Found, rng: np.random.Generator) -> Diagnostics:
        """Components that differ in nothing, until the stream has enough samples."""
        if self._warns():
            return super()._wait(found, rng)
        k, moments = self.n_components, found.moments
        self._learn(indifferent(moments.mean, moments.variance, k, self.covariance_type), ())
        return without_moments(k, "waiting for more samples", (str(found.error),), {})

    def _learn(self, parameters: GaussianParameters, traces: tuple[Trace, ...]) -> None:
        parameters = parameters.ordered()
        self.weights_, self.means_, self.covariances_ = parameters.weights, parameters.means, parameters.covariances
        self.n_iter_ = sum(trace.n_iter for trace in traces)
        self.converged_ = all(trace.converged for trace in traces[-1:])
        self.lower_bound_ = float(traces[-1].values[-1]) if traces else float("nan")

    def _check_options(self) -> None:
        self._options()

    def _options(self) -> Options:
        check_integer("n_components", self.n_components)
        check_choice("covariance_type", self.covariance_type, COVARIANCE_TYPES)
        check_choice("route", self.route, _ROUTES)
        check_choice("refine", self.refine, _REFINE)
        check_effort(self.effort)
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_number("variance_floor", self.variance_floor)
        if self.variance_floor == 0:
            raise ValueError("variance_floor must be positive: a component on one sample would have density infinity.")
        if self.refine == "one-step" and self.covariance_type in ("full", "tied"):
            raise ValueError(
                "refine='one-step' improves a consistent estimate, and covariance_type="
                f"{self.covariance_type!r} has none: use refine='em', or 'spherical', 'tied_spherical' or 'diag'."
            )
        if self.route == "views" and self.covariance_type not in SPHERICAL:
            raise ValueError(
                "route='views' rotates, which leaves only spheres independent: use covariance_type='spherical' or "
                f"'tied_spherical', got {self.covariance_type!r}."
            )
        return Options(
            int(self.n_components),
            self.covariance_type,
            self._decomposer(),
            self.route,
            self.refine,
            self.effort,
            StoppingRule(int(self.max_iter), float(self.tol)),
            float(self.variance_floor),
        )

    # What intervals ask for.

    def _ranges(self) -> dict[str, Any]:
        matrix = self.covariance_type in ("full", "tied")
        return {"covariances_": covariance_ranges(self.covariances_, is_matrix=matrix)}

    def _free_parameters(self) -> list[Free]:
        kind, values = self.covariance_type, np.asarray(self.covariances_, dtype=np.float64)
        axis = None if kind in ("tied", "tied_spherical") else 0
        variances = np.diagonal(values, axis1=-2, axis2=-1) if kind in ("full", "tied") else values
        scale = np.sqrt(variances)[:, None] if kind == "spherical" else np.sqrt(variances)
        columns = np.arange(self.means_.shape[1]) if kind == "diag" else None
        return [
            Free("weights_", "simplex", self.weights_),
            Free("means_", "real", self.means_, scale=scale, columns=columns),
            Free("covariances_", "covariance" if kind in ("full", "tied") else "positive", values, axis, None, columns),
        ]

    def _climbed(self, X: Any, given: Mapping[str, Any], rng: Any) -> Self | None:
        again = copy(self)
        parameters = GaussianParameters(self.weights_, self.means_, self.covariances_, self.covariance_type)
        found = climbed(again._open(X, **given), parameters, self._options())
        again.weights_, again.means_, again.covariances_ = found.weights, found.means, found.covariances
        return again

    # What the shell of the mixtures asks for.

    def _log_joint(self, clean: Any) -> Floats:
        check_is_fitted(self)
        # About the mean of the components: squares of a large offset would cost the digits of the distances.
        origin = self.weights_ @ self.means_
        parameters = GaussianParameters(self.weights_, self.means_ - origin, self.covariances_, self.covariance_type)
        points = Points(list(batches_of(clean, None, POLICY.batch)), origin, np.float64, self.n_features_in_)
        return log_joint(points, parameters)

    def _draw(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Floats:
        return COVARIANCES[self.covariance_type].draw(self.means_, self.covariances_, labels, rng)

    def _n_parameters(self) -> int:
        return n_parameters(self.covariance_type, *self.means_.shape)
