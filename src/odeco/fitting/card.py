"""A model's card: all that the rest of the library knows of it. Command line, files, reports and figures go over cards.

Cards are read before anything is fitted, to list the models in a help text for instance, so they are light: what a
model is made of is named by its import path ("package.module:Name") and imported when it is needed. In a notebook or a
test the class or the function itself may stand there instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

Reference = str | Callable[..., Any]

# Kinds of rows; each has a reader on the command line.
ROWS = ("counts", "table", "mixed", "views", "labels", "symbols", "features", "events", "signals")

# What every fitted estimator has, in the words of `odeco.persistence.shapes`.
EVERY: Mapping[str, str] = {
    "n_features_in_": "whole d",
    "feature_names_in_": "maybe any d",
    "n_iter_": "maybe whole",
    "n_components_": "maybe positive-whole",  # that was chosen
    "diagnostics_": "maybe Diagnostics",
    "_sklearn_output_config": "maybe plain",  # of set_output
}


def shapes(text: str) -> dict[str, str]:
    """Attributes and what they are, written as "n: whole, basis: finite d r"."""
    return dict(each.split(": ") for each in text.split(", "))


def resolve(reference: Reference) -> Any:
    """What a reference of a card stands for; ImportError where it is not there."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    found = getattr(import_module(module), name, None)
    if found is None:
        raise ImportError(f"a card names {reference!r}, and there is no {name!r} in {module}.", name=module)
    return found


def path_of(reference: Reference) -> str:
    """The import path of a class or function, "package.module:Name"."""
    return reference if isinstance(reference, str) else f"{reference.__module__}:{reference.__qualname__}"


@dataclass(frozen=True)
class Option:
    """An argument of the estimator that the command line offers.

    Attributes
    ----------
    name : str
        As in the constructor.
    kind : type
        int, float or str.
    help : str
        One sentence.
    flag : str
        As it is typed; made from the name if left out.
    choices : tuple of str
        The words that are allowed, where only some are.
    least : float or None
        The smallest number that is allowed.
    word : str
        A word that may stand instead of a number, such as "auto".
    several : bool
        Whether it may be given again and again: once for all columns, or once for each.
    """

    name: str
    kind: type
    help: str
    flag: str = ""
    choices: tuple[str, ...] = ()
    least: float | None = None
    word: str = ""
    several: bool = False


@dataclass(frozen=True)
class ByOption:
    """The shape of a learned attribute, where it depends on the value of an argument."""

    name: str
    shapes: Mapping[str, str]


@dataclass(frozen=True)
class Stored:
    """A class whose objects a model file may hold: the sums of `partial_fit` and what they are made of.

    Attributes
    ----------
    kind : str or class
        The class, or its import path: where it is defined, not where it is also known.
    sizes : str
        Letters of sizes that it has in common with what holds it, in the order in which they are given.
    attributes : mapping
        Every attribute (every field of a dataclass) and what it is, in the words of `odeco.persistence.shapes`.
    rule : str, function or None
        What words cannot say: a function that is True for sound objects.
    """

    kind: Reference
    sizes: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    rule: Reference | None = None


@dataclass(frozen=True)
class Part:
    """One topic, component, class, state or source.

    Attributes
    ----------
    name : int or str
        Its number in the model, or the label of a class.
    facts : mapping
        Its share and what else is said in numbers.
    items : sequence of mappings
        The words, symbols, columns or channels that tell most of it, most telling first; each has a "name".
    """

    name: int | str
    facts: Mapping[str, float]
    items: Sequence[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Card:
    """One model, as the rest of the library sees it.

    Attributes
    ----------
    name : str
        As in ``odeco fit NAME``.
    estimator : str or class
        The class, or its import path. Files know it by its name, so no two cards have classes of the same name.
    rows : str
        The kind of data, one of `ROWS`.
    part : str
        What one component is called.
    summary : str
        One line for the list of models.
    options : tuple of Option
        Arguments of the estimator that the command line offers, beside the number of parts and the seed.
    examples : tuple of str
        Commands that work, for ``--help``.
    count : str
        The estimator's name for the number of parts.
    count_required : bool
        Whether the estimator cannot find that number itself.
    learned : mapping
        What a fitted model has beyond `EVERY`, private attributes included, in the words of
        `odeco.persistence.shapes`: "simplex k d", or "maybe ..." for what may be absent. `k` is the number of
        components, `d` that of features. A size is told before it is used.
    stored : mapping
        Classes that only models of this kind keep in files, by the names that files give them.
    check : str, function or None
        ``check(parameters, learned)``: raises ValueError for what words cannot say of the attributes together.
    parts : str or function
        ``parts(model, names, top)``: a `Part` for each component, where `names` may hold "vocabulary", "symbols" or
        "feature_names", for ``odeco show``.
    frame : str or function
        ``frame(model, names)``: what was learned as a DataFrame, for `to_frame`.
    page : str or function
        ``page(model, inputs)``: the `odeco.report.page.Page` of the report.
    plots : tuple of str
        Functions of `odeco.plots` that give the numbers of its figures, beyond those of every model.
    objective : str
        What the refinement makes larger.
    centred : bool
        Whether its moments are taken about the mean, so that k components span k - 1 directions.
    """

    name: str
    estimator: Reference
    rows: str
    part: str
    summary: str
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    count: str = "n_components"
    count_required: bool = True
    learned: Mapping[str, str | ByOption] = field(default_factory=dict, repr=False)
    stored: Mapping[str, Stored] = field(default_factory=dict, repr=False)
    check: Reference | None = None
    parts: Reference = "odeco.plots.parts:shares"
    frame: Reference = "odeco.plots.frames:weight_frame"
    page: Reference = "odeco.report.listing:listing_page"
    plots: tuple[str, ...] = ()
    objective: str = "log-likelihood per sample"
    centred: bool = False

    def __post_init__(self) -> None:
        """Kinds of rows are known before a command line asks for one."""
        if self.rows not in ROWS:
            raise ValueError(f"rows of {self.name!r} must be one of {', '.join(ROWS)}, got {self.rows!r}.")

    @property
    def class_name(self) -> str:
        """The name of the estimator's class."""
        return path_of(self.estimator).rpartition(":")[2].rpartition(".")[2]

    @property
    def plural(self) -> str:
        """What several components are called."""
        return f"{self.part}es" if self.part.endswith("s") else f"{self.part}s"

    def noun(self, n: int) -> str:
        """What n components are called."""
        return self.part if n == 1 else self.plural

    @property
    def attributes(self) -> Mapping[str, str | ByOption]:
        """Everything that a fitted model may have, in the order in which it is checked."""
        return {**EVERY, **self.learned}

    def load(self) -> Any:
        """The class of the estimator."""
        return resolve(self.estimator)

    def make(self, n_parts: int | str | None, seed: int | None, values: Mapping[str, Any]) -> Any:
        """The estimator with the options that were given on a command line; the others keep its own defaults."""
        arguments = {name: value for name, value in values.items() if value is not None}
        if arguments.get("refine") == "none":
            arguments["refine"] = None
        for option in self.options:
            if option.several and option.name in arguments:  # one for all, or one for each
                found = list(arguments[option.name])
                arguments[option.name] = found[0] if len(found) == 1 else found
        if n_parts is not None:
            arguments[self.count] = n_parts
        return self.load()(**arguments, random_state=seed)
