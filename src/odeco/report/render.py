"""From a fitted model to one HTML file: no network, nothing beside it."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import odeco
from odeco.fitting.card import resolve
from odeco.models.cards import known_card
from odeco.plots.fit import convergence, spectrum
from odeco.plots.names import check_model, rows_of
from odeco.report.certainty import certainty
from odeco.report.charts import convergence_chart, spectrum_chart
from odeco.report.choice import choice_table
from odeco.report.explanations import findings
from odeco.report.fitted import all_options, facts, python_call, seed_advice
from odeco.report.page import Inputs, Page

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals

Documents = Sequence[str] | Callable[[], Iterable[str]]


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    data: Any = None,
    documents: Documents | None = None,
    vocabulary: Sequence[Any] | None = None,
    feature_names: Sequence[Any] | None = None,
    titles: Sequence[Any] | None = None,
    dates: Sequence[Any] | None = None,
    fitted: Mapping[str, Any] | None = None,
    intervals: Intervals | None = None,
    title: str | None = None,
) -> Path:
    """Write a report on a fitted model: one HTML file that can be opened, sent and printed.

    Parameters
    ----------
    model : a fitted estimator of odeco
    path : str or path
        Where to write; "-" is the standard output. An existing file is replaced when the new one is complete.
    data : what `fit` takes, optional
        Read once for what only data can show: prevalence and representative documents, samples and their classes, the
        sources of signals, a decoded sequence. Hidden Markov models take X, a list of sequences, or (X, lengths).
    documents : sequence of str, or a function that returns an iterator over them, optional
        Texts of the rows of `data`, for topic models.
    vocabulary : sequence of str, optional
        Words of the columns of a topic model, symbols of a `CategoricalHMM`; names of DataFrame columns are known.
    feature_names : sequence of str, optional
        Names of the columns or channels of all others (one list for each view).
    titles : sequence of str, optional
        Names of the documents of a topic model, instead of their numbers.
    dates : sequence, optional
        Years or dates (2021-06-30) of the documents of a topic model: its prevalence is then shown along time.
    fitted : mapping, optional
        How the model was fitted, to be shown: "command", "seconds", "rows" and whatever else is known.
    intervals : Intervals, optional
        What `odeco.intervals` gave: error bars, and a section on how sure the model is.
    title : str, optional
        Instead of "20 topics in 8,754 documents".

    Returns
    -------
    Path
        The file written.
    """
    text = render_report(
        model,
        data=data,
        documents=documents,
        vocabulary=vocabulary,
        feature_names=feature_names,
        titles=titles,
        dates=dates,
        fitted=fitted,
        intervals=intervals,
        title=title,
    )
    from odeco.files.output import writing

    with writing(path) as file:
        file.write(text.encode("utf-8"))
    return Path(path)


def render_report(
    model: Any,
    *,
    data: Any = None,
    documents: Documents | None = None,
    vocabulary: Sequence[Any] | None = None,
    feature_names: Sequence[Any] | None = None,
    titles: Sequence[Any] | None = None,
    dates: Sequence[Any] | None = None,
    fitted: Mapping[str, Any] | None = None,
    intervals: Intervals | None = None,
    title: str | None = None,
) -> str:
    """The text of the report that `write_report` writes."""
    check_model(model)
    if documents is not None and data is None:
        raise ValueError("documents are the texts of the rows of data: give data as well.")
    if (titles is not None or dates is not None) and (data is None or rows_of(model) != "counts"):
        raise ValueError(
            "titles and dates are of the documents of a topic model: give data as well, or leave them out."
        )
    if intervals is not None:
        intervals.check_model(model)
    words, columns, headings, times = (_names(each) for each in (vocabulary, feature_names, titles, dates))
    page = _page(model, Inputs(data, documents, words, columns, headings, times, intervals))
    script = _file("report.js")
    text: str = (
        _environment()
        .get_template(page.template)
        .render(
            **_fit_context(model, fitted),
            certainty=None if intervals is None else certainty(model, intervals, vocabulary, feature_names),
            title=title or page.title,
            page=page,
            content=page.content,
            style=_file("report.css"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )
    return text


def _fit_context(model: Any, fitted: Mapping[str, Any] | None) -> dict[str, Any]:
    """What every report says of its fit."""
    found = convergence(model)
    chart, note = convergence_chart(found)
    return {
        "model": known_card(model).class_name,
        "report": model.diagnostics_,
        "verdict": model.diagnostics_.verdict,
        "findings": findings(model),
        "choice": choice_table(model),
        "spectrum": spectrum_chart(spectrum(model)),
        "convergence": found,
        "convergence_chart": chart,
        "convergence_note": note,
        "command": str((fitted or {}).get("command") or ""),
        "python": python_call(model),
        "options": all_options(model),
        "facts": facts(model, fitted),
        "seed_advice": seed_advice(model),
        "version": odeco.__version__,
    }


def _page(model: Any, inputs: Inputs) -> Page:
    """The page that the model's card names."""
    page: Page = resolve(known_card(model).page)(model, inputs)
    return page


def _names(given: Sequence[Any] | None) -> list[Any] | None:
    return None if given is None else list(given)


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("odeco.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _file(name: str) -> str:
    return resources.files("odeco.report").joinpath("templates", name).read_text(encoding="utf-8")
