"""The door: `choose_components`, and what an estimator with ``n_components="auto"`` does in its `fit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from odeco._random import as_generator
from odeco.exceptions import MomentError
from odeco.fitting.choice.gather import Count, Gathering
from odeco.fitting.choice.numbers import check_candidates, explore, screen
from odeco.fitting.choice.path import Path, with_count
from odeco.fitting.choice.record import Choice, Evidence
from odeco.fitting.choice.rule import CRITERIA, decide
from odeco.fitting.options import check_choice
from odeco.moments.passes import fill
from odeco.sources.base import require_passes
from odeco.sources.halves import halves_of
from odeco.sources.kinds import Checkpointed

# Where nobody said how many to try: up to this many, then twice or four times as many where the best is the last, while
# each has some samples. Components of a form that does not fit (spheres for columns of different units) have no end.
_FIRST_MOST, _MOST, _SAMPLES_EACH = 15, 60, 50


def choose_components(
    estimator: Any,
    X: Any,
    candidates: Iterable[int] | None = None,
    *,
    criterion: str = "auto",
    halves: bool = True,
    every: bool = False,
    watch: Callable[[Evidence], None] | None = None,
    **fit_options: Any,
) -> Choice:
    """How many components the data show: one estimator with several numbers of them, and the evidence side by side.

    The moments are read once, for the largest number; the refined fits for smaller ones take their part of them. Two
    fits to two halves of the rows tell which components come back, and how likely rows are that were kept apart.

    Parameters
    ----------
    estimator : estimator of odeco
        Its number of components does not matter. It stays as it is.
    X : what its `fit` takes
        Read several times: an iterator that can be read once is an error.
    candidates : numbers of components, optional
        Such as ``range(2, 31)``. By default 1 to 15, and up to 60 as long as the largest is best.
    criterion : {"auto", "bic", "icl", "marginal", "held_out", "replication", "spectrum"}
        What decides; all evidence is in the table whatever decides. "auto" is BIC where the model has a likelihood of
        all rows, "marginal" where most of its parameters are probabilities (hidden Markov chains, product mixtures, one
        topic each), held-out words for latent Dirichlet allocation, the spectrum for ICA.
    halves : bool
        Whether two halves are fitted as well: without them the choice takes half the time, and replication and held-out
        likelihood are not known (an error where `criterion` needs them).
    every : bool
        Look at every candidate. By default, of more than a dozen only some, then those around the best.
    watch : function, optional
        Called with the `Evidence` of each number as soon as it is there.
    **fit_options
        What else `fit` takes, such as ``lengths`` or ``sample_weight``.

    Returns
    -------
    Choice

    Examples
    --------
    >>> import odeco
    >>> truth = odeco.simulate.random_chain(3, 8, random_state=1)
    >>> symbols = odeco.simulate.categorical_hmm(4000, *truth, random_state=1).observations
    >>> choice = odeco.choose_components(odeco.CategoricalHMM(random_state=0), symbols, range(1, 6))
    >>> choice.best
    3
    """
    check_choice("criterion", criterion, CRITERIA)
    _check_estimator(estimator)
    return _chosen(estimator, X, candidates, criterion, fit_options, halves=halves, every=every, watch=watch)[0]


def fit_chosen(
    estimator: Any, X: Any, given: Mapping[str, Any], candidates: Iterable[int] | None = None
) -> tuple[Choice, Any]:
    """The choice for an estimator that was asked to make it, and the fit of the best number."""
    choice, gathering = _chosen(estimator, X, candidates, "auto", given, halves=False, every=False, watch=None)
    model = gathering.models.get(choice.best)
    return choice, gathering.whole.fit(choice.best) if model is None else model


def _check_estimator(estimator: Any) -> None:
    if not hasattr(estimator, "_count") or not hasattr(estimator, "_passes"):
        raise ValueError(f"estimator must be one of odeco's, got {type(estimator).__name__}.")


def _chosen(
    estimator: Any, X: Any, candidates: Any, criterion: str, given: Mapping[str, Any], *, halves: bool, every: bool,
    watch: Callable[[Evidence], None] | None,
) -> tuple[Choice, Gathering]:  # fmt: skip
    wanted = None if candidates is None else check_candidates(candidates)
    if isinstance(X, Checkpointed):
        raise ValueError(
            "checkpoints keep the sums of one fit, and a choice makes many: give the data themselves, then fit with "
            "the number that was chosen."
        )
    source, opened = _opened(estimator, X, given, max(wanted or [1]))
    n, most = _sizes(estimator, source, opened)
    decided_by = estimator._criterion if criterion == "auto" else criterion
    if wanted is not None:
        _check_within(estimator, wanted, n, most)
        return _explored(
            estimator, source, opened, (n, most), wanted, decided_by, halves=halves, every=every, watch=watch
        )
    limit, found = _FIRST_MOST, None
    while True:
        numbers = list(range(1, min(limit, most, n - 1) + 1))
        found = _explored(
            estimator, source, opened, (n, most), numbers, decided_by, found, halves=halves, every=every, watch=watch
        )
        limit *= 2
        if found[0].best < numbers[-1] or numbers[-1] < limit // 2 or limit > min(_MOST, n // _SAMPLES_EACH):
            return found


def _opened(estimator: Any, X: Any, given: Mapping[str, Any], k: int) -> tuple[Any, dict[str, Any]]:
    """The rows, and what opening them has taught of their form."""
    model = with_count(estimator, k)
    model._check_options()
    before = set(vars(model))
    source = model._open(X, **given)
    require_passes(source, 2)
    return source, {name: value for name, value in vars(model).items() if name not in before}


def _sizes(estimator: Any, source: Any, opened: Mapping[str, Any]) -> tuple[int, int]:
    """Samples, and the most components that they can have."""
    model = with_count(estimator, 1)
    vars(model).update(opened)
    count = fill(Count(), source)
    n = int(max(count.n, count.weight))
    if n < 2:
        raise ValueError(f"n_samples={n}: a number of components cannot be chosen from so few. Use more samples.")
    most = model._most_components(source)
    return n, n if most is None else most


def _check_within(estimator: Any, wanted: list[int], n: int, most: int) -> None:
    if wanted[-1] > n:
        raise ValueError(f"candidates go up to {wanted[-1]}, and there are {n} samples: give smaller numbers.")
    if wanted[-1] > most:
        raise ValueError(
            f"candidates go up to {wanted[-1]}, and {type(estimator).__name__} can have {most} with these columns: "
            "give smaller numbers."
        )


def _explored(
    estimator: Any, source: Any, opened: Mapping[str, Any], sizes: tuple[int, int], numbers: list[int], criterion: str,
    before: tuple[Choice, Gathering] | None = None, *,
    halves: bool, every: bool, watch: Callable[[Evidence], None] | None,
) -> tuple[Choice, Gathering]:  # fmt: skip
    needed, (n, most) = criterion in ("held_out", "replication"), sizes
    small, n_parts = estimator._most_judged() is not None, parts_judged(estimator, n)
    both = halves_of(source, _seed(estimator), n_parts, small=small) if halves or needed else None
    if needed and both is None:
        raise ValueError(f"criterion={criterion!r} needs two halves of the rows, which these cannot be cut into.")
    whole = Path(estimator, source, opened, numbers[-1])
    largest = max((k for k in numbers if k < n // n_parts), default=1)
    paths = None if both is None else (whole.over(both[0], largest), whole.over(both[1], largest))
    full = estimator._criterion != "held_out"
    gathering = Gathering(whole, paths, full=full, criterion=criterion, n_half=n // n_parts, watch=watch)
    if before is not None:
        gathering.goes_on(before[1])
    if criterion == "spectrum" and both is None:
        gathering.look(numbers[-1])
        gathering.rows |= {k: Evidence(k) for k in numbers[:-1]}
    elif both is None and not every:
        screen(numbers, gathering)
    else:
        explore(numbers, gathering, every=every)
    choice = decide(gathering.with_spectrum(), criterion, most)
    if choice is None:
        raise MomentError(_nothing(criterion, gathering))
    return choice, gathering


def parts_judged(estimator: Any, n: int) -> int:
    """Two halves, or two of as many parts as make them no larger than need be."""
    most = estimator._most_judged()
    return 2 if most is None else max(2, -(-n // most))


def _nothing(criterion: str, gathering: Gathering) -> str:
    why = next((row.note for row in gathering.rows.values() if row.note), "the model has none")
    return f"no number of components has any evidence of the kind criterion={criterion!r}: {why}"


def _seed(estimator: Any) -> int:
    return int(as_generator(estimator.random_state).integers(2**31))
