"""The table of models: what each is called, which estimator fits it, what it reads, which options it has."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from odeco.cli.options import number_or, option

MAX_ITER = option("max_iter", int, "Steps of the refinement at most.", min=1)
TOL = option("tol", float, "Gain per step below which the refinement stops.", min=0.0)
SMOOTHING = option("smoothing", float, "Pseudo-count of what was never seen.", min=0.0)
COVARIANCES = ("spherical", "tied_spherical", "diag", "full", "tied")
FAMILIES = ("auto", "gaussian", "bernoulli", "categorical", "poisson")
LIKELIHOODS = ("auto", "gaussian", "bernoulli", "poisson", "multinomial")


def _refine(*names: str) -> inspect.Parameter:
    what = "What polishes the moment estimate; none keeps the pure estimate of the paper."
    return option("refine", str, what, choices=("auto", *names, "none"))


def _covariance(*choices: str) -> inspect.Parameter:
    return option("covariance_type", str, "Shape of the components.", "--covariance", choices=choices)


@dataclass(frozen=True)
class Model:
    """One model of the command line.

    Attributes
    ----------
    name : str
        As in ``odeco fit NAME``.
    estimator : str
        Name of the class in `odeco`.
    reads : str
        Kind of data, a key of `odeco.cli.inputs.READERS`.
    part : str
        What one component is called.
    summary : str
        One line for the list of models.
    settings : tuple of inspect.Parameter
        Options that are arguments of the estimator.
    examples : tuple of str
        Commands that work, for ``--help``.
    count : str
        The estimator's name for the number of parts.
    count_required : bool
        Whether the estimator cannot find that number itself.
    """

    name: str
    estimator: str
    reads: str
    part: str
    summary: str
    settings: tuple[inspect.Parameter, ...]
    examples: tuple[str, ...]
    count: str = "n_components"
    count_required: bool = True

    @property
    def parts(self) -> str:
        """The plural of `part`."""
        return f"{self.part}es" if self.part.endswith("s") else f"{self.part}s"

    def make(self, n_parts: int | None, seed: int | None, values: dict[str, Any]) -> Any:
        """The estimator with the options that were given; the others keep its own defaults."""
        import odeco

        arguments = {name: value for name, value in values.items() if value is not None}
        if arguments.get("refine") == "none":
            arguments["refine"] = None
        for name in ("family", "likelihood"):  # one for all columns (or views), or one for each
            if isinstance(found := arguments.get(name), (list, tuple)):
                arguments[name] = found[0] if len(found) == 1 else list(found)
        if n_parts is not None:
            arguments[self.count] = n_parts
        return getattr(odeco, self.estimator)(**arguments, random_state=seed)


_TABLE = (
    Model(
        "lda",
        "LatentDirichletAllocation",
        "counts",
        "topic",
        "Topics of documents, each document a mixture of them (latent Dirichlet allocation).",
        (
            option(
                "alpha0",
                str,
                "Sum of the Dirichlet parameters, or auto: small where documents have few topics.",
                parser=number_or("auto"),
                metavar="NUMBER|auto",
            ),
            option("eta", float, "Dirichlet parameter of the words in a topic.", min=0.0),
            _refine("cvb0", "vb", "map"),
            MAX_ITER,
            TOL,
        ),
        (
            "odeco fit lda articles.txt -k 20 --out topics.odeco",
            "odeco fit lda reviews.csv --column review --stop-words english -k 30 --out topics.odeco",
            "odeco fit lda docword.nips.txt.gz -k 50 --out nips.odeco",
        ),
    ),
    Model(
        "single-topic",
        "SingleTopicModel",
        "counts",
        "topic",
        "Documents of one topic each (a mixture of multinomials): short texts, titles, tickets.",
        (_refine("em", "one-step"), SMOOTHING, MAX_ITER, TOL),
        (
            "odeco fit single-topic titles.txt -k 15 --out titles.odeco",
            "zcat titles.txt.gz | odeco fit single-topic - -k 15 --out titles.odeco",
        ),
    ),
    Model(
        "gaussian-mixture",
        "GaussianMixture",
        "table",
        "component",
        "Clusters of measurements (a mixture of Gaussians).",
        (_covariance(*COVARIANCES), _refine("em", "one-step"), MAX_ITER, TOL),
        (
            "odeco fit gaussian-mixture penguins.csv -k 3 --covariance full --out penguins.odeco",
            "odeco fit gaussian-mixture embeddings.npy -k 20 --out clusters.odeco",
        ),
    ),
    Model(
        "product-mixture",
        "ProductMixture",
        "mixed",
        "class",
        "Latent classes of answers, codes, counts and numbers in one table; values may be missing.",
        (
            option(
                "family",
                list[str],
                "Family of all columns, or of each in turn (repeat it).",
                choices=FAMILIES,
            ),
            _refine("em", "one-step"),
            MAX_ITER,
            TOL,
        ),
        (
            "odeco fit product-mixture survey.csv -k 4 --out classes.odeco",
            "odeco fit product-mixture votes.parquet -k 2 --family categorical --out votes.odeco",
        ),
    ),
    Model(
        "multiview",
        "MultiViewMixture",
        "views",
        "component",
        "Groups seen in three or more views of the same samples, a file for each view.",
        (
            option(
                "likelihood",
                list[str],
                "What is assumed of all views, or of each in turn (repeat it).",
                choices=LIKELIHOODS,
            ),
            _refine("em", "one-step", "least-squares"),
            SMOOTHING,
            MAX_ITER,
            TOL,
        ),
        (
            "odeco fit multiview pixels.npy words.npz tags.csv -k 5 --out groups.odeco",
            "odeco fit multiview all.csv --view a1,a2,a3 --view b1,b2 --view c1,c2,c3 -k 3 --out groups.odeco",
        ),
    ),
    Model(
        "dawid-skene",
        "DawidSkene",
        "labels",
        "class",
        "True classes of items from the labels of annotators who err.",
        (
            option("n_init", int, "Random groupings of the annotators to start from.", "--starts", min=1),
            _refine("em", "one-step", "least-squares"),
            SMOOTHING,
            MAX_ITER,
            TOL,
        ),
        (
            "odeco fit dawid-skene labels.csv --out crowd.odeco",
            "odeco fit dawid-skene wide.csv --layout wide -k 2 --out crowd.odeco",
        ),
        count="n_classes",
        count_required=False,
    ),
    Model(
        "hmm",
        "CategoricalHMM",
        "symbols",
        "state",
        "Hidden states behind sequences of symbols: letters, words, events.",
        (_refine("baum-welch"), SMOOTHING, MAX_ITER, TOL),
        (
            "odeco fit hmm moby_dick.txt --unit characters -k 2 --out letters.odeco",
            "odeco fit hmm clicks.csv --sequence session --columns page -k 6 --out visits.odeco",
        ),
    ),
    Model(
        "gaussian-hmm",
        "GaussianHMM",
        "features",
        "state",
        "Hidden states behind sequences of measurements.",
        (
            _covariance("spherical", "diag", "full", "tied"),
            _refine("baum-welch"),
            SMOOTHING,
            MAX_ITER,
            TOL,
        ),
        (
            "odeco fit gaussian-hmm geyser.csv -k 3 --out geyser.odeco",
            "odeco fit gaussian-hmm sensors.parquet --sequence device --columns speed,load -k 4 --out states.odeco",
        ),
    ),
    Model(
        "poisson-hmm",
        "PoissonHMM",
        "events",
        "state",
        "Hidden states behind sequences of counts.",
        (_refine("baum-welch"), SMOOTHING, MAX_ITER, TOL),
        (
            "odeco fit poisson-hmm earthquakes.csv --columns count -k 3 --out quakes.odeco",
            "odeco fit poisson-hmm calls.npy -k 2 --out calls.odeco",
        ),
    ),
    Model(
        "ica",
        "ICA",
        "signals",
        "source",
        "Independent sources of mixed signals; Gaussian noise does not bias them.",
        (
            option("noise", str, "What is known of the noise.", choices=("auto", "isotropic", "general")),
            option("estimate", str, "What transform gives.", choices=("inverse", "sinr")),
            _refine("least-squares", "likelihood"),
            MAX_ITER,
            TOL,
        ),
        (
            "odeco fit ica party.wav --out voices.odeco",
            "odeco fit ica electrodes.csv -k 3 --out heart.odeco",
        ),
        count_required=False,
    ),
)

MODELS = {model.name: model for model in _TABLE}


def of_estimator(estimator: Any) -> Model:
    """The row of a fitted estimator."""
    return next(model for model in _TABLE if model.estimator == type(estimator).__name__)
