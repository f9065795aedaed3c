"""Names of arguments that people bring from other libraries, answered with the name that they have here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import Any

_ITERATIONS = "steps of the refinement are limited by max_iter"
_STARTS = "one fit looks for its start itself: effort='thorough' makes it look longer"
_ALL_LEARNED = "all parameters are estimated; set them by hand (startprob_, transmat_, ...) to predict without a fit"
_COUNT = "the number of components is {count}"
# What each name means elsewhere, and what there is here; an argument that the estimator has comes before all of these.
_HINTS = {
    **dict.fromkeys(("n_iter", "iterations", "passes", "n_steps", "max_epochs"), _ITERATIONS),
    **dict.fromkeys(("n_init", "init", "n_starts"), _STARTS),
    **dict.fromkeys(("params", "init_params"), _ALL_LEARNED),
    **dict.fromkeys(("n_topics", "num_topics", "n_states", "n_clusters", "n_classes", "n_components", "k"), _COUNT),
    **dict.fromkeys(
        ("startprob_prior", "transmat_prior", "emissionprob_prior", "doc_topic_prior", "topic_word_prior"),
        "priors are smoothing (pseudo-counts of chains), alpha0 and eta (of topics), where the model has them",
    ),
    **dict.fromkeys(("seed", "random_seed"), "the seed is random_state"),
    "n_jobs": "all cores are used, and ODECO_NUM_THREADS in the environment says how many; BLAS has threadpoolctl",
    "measurement": "the kinds of columns are family, of ProductMixture",
    "warm_start": "a fit starts from the moments; partial_fit goes on with more data",
    "learning_method": "data that come in chunks go to partial_fit",
}


def with_hints(constructor: Callable[..., None]) -> Callable[..., None]:
    """A constructor that answers arguments it does not have with what is meant by them here."""
    known = [name for name in inspect.signature(constructor).parameters if name != "self"]

    @wraps(constructor)
    def construct(self: Any, *args: Any, **given: Any) -> None:
        for name in given:
            if name not in known:
                raise TypeError(f"{type(self).__name__}() has no argument {name!r}: {_hint(name, known)}.")
        constructor(self, *args, **given)

    return construct


def _hint(name: str, known: list[str]) -> str:
    hint = _HINTS.get(name)
    if hint is not None:
        return hint.format(count=known[0])
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
