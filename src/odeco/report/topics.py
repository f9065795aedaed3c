"""The page of a topic model: map, words by relevance, prevalence, representative documents."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from odeco.plots.documents import Example, TopicUse, topic_use
from odeco.plots.names import column_names
from odeco.plots.topics import (
    DEFAULT_RELEVANCE,
    TopicMap,
    candidate_words,
    relevance,
    top_words,
    topic_map,
    topic_shares,
    word_frequencies,
)
from odeco.report.charts import sparkline, topic_map_chart
from odeco.report.dates import Timeline, timeline
from odeco.report.page import Inputs, Page, plural
from odeco.report.sure import Sure
from odeco.report.svg import Scale, number, percent

Floats = NDArray[np.float64]

WORDS = 15  # of a topic that are shown at a time
_NEIGHBOURS = 3
_EXCERPT = 360  # characters of a representative document
_STEP = 0.05  # of the slider
_WORD = re.compile(r"\w\w+")


@dataclass(frozen=True, eq=False)
class Documents:
    """What is known of the documents beside their counts."""

    texts: dict[int, str]
    titles: Sequence[Any] | None = None
    time: Timeline | None = None

    def name(self, row: int) -> str:
        """Its title, or else its number, and its date."""
        title = None if self.titles is None else self.titles[row]
        name = f"document {row:,}" if title is None or not str(title).strip() else _shortened(str(title))
        return name if self.time is None else f"{name}, {self.time.names[row]}"


def _shortened(text: str, most: int = 90) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def topic_page(model: Any, inputs: Inputs) -> Page:
    """Everything a topic report shows."""
    components = np.asarray(model.components_, dtype=np.float64)
    k, d = components.shape
    names = column_names(model, inputs.vocabulary, d, what="word", argument="vocabulary")
    time = None if inputs.dates is None else timeline(inputs.dates)
    use = None if inputs.data is None else topic_use(model, inputs.data, places=None if time is None else time.places)
    shares = topic_shares(model)
    frequencies = word_frequencies(components, shares)
    plane = topic_map(components, shares)
    best = top_words(relevance(components, frequencies), WORDS)
    texts = _example_texts(inputs, use)
    named = Documents(texts, _titles(inputs, use), time)
    sure = Sure(inputs.intervals)
    topics = [_topic(i, components, frequencies, best[i], names, plane, use, named, sure) for i in range(k)]
    content = {
        "topics": topics,
        "map": topic_map_chart(
            plane, [", ".join(t["summary"][:6]) for t in topics], [" ".join(t["summary"][:2]) for t in topics]
        ),
        "listed": sorted(topics, key=lambda topic: -float(topic["bar"])),
        "along": "first to last document" if time is None else f"{time.first} to {time.last}",
        "kept": percent(plane.kept),
        "relevance": DEFAULT_RELEVANCE,
        "step": _STEP,
        "texts": bool(texts),
        "level": sure.level,
    }
    figures = [(str(k), "topics" if k > 1 else "topic"), (f"{d:,}", "words in the vocabulary")]
    if use is not None:
        figures[1:1] = [(f"{use.n_documents:,}", "documents"), (f"{use.n_words:,.0f}", "words read")]
    where = f" in {plural(use.n_documents, 'document')}" if use is not None else ""
    kind = "Every document is a mixture of them." if hasattr(model, "alpha_") else "Every document has one of them."
    return Page(
        title=f"{plural(k, 'topic')}{where}",
        lede=f"{kind} Topics are numbered as in the model.",
        template="topics.html.jinja",
        content=content,
        figures=tuple(figures),
        script_data=_script_data(components, frequencies, names, sure),
    )


def _topic(
    i: int,
    components: Floats,
    frequencies: Floats,
    best: NDArray[np.intp],
    names: list[str],
    plane: TopicMap,
    use: TopicUse | None,
    documents: Documents,
    sure: Sure,
) -> dict[str, Any]:
    """What is shown of one topic."""
    largest = sure.largest("components_", i, best, components)
    rows = [
        {
            **_row(names[w], _digits(components[i, w]), _digits(frequencies[w]), largest),
            "reach": sure.reach(Scale(0, largest, 0, 100), "components_", (i, int(w))),
            "sure": sure.share("components_", (i, int(w)), text=small_percent),
        }
        for w in best
    ]
    near = [int(j) for j in np.argsort(plane.distances[i], kind="stable") if j != i][:_NEIGHBOURS]
    topic: dict[str, Any] = {
        "number": i,
        "colour": sure.colour(i),
        "lost": sure.lost(i),
        "share": percent(float(plane.shares[i])),
        "sure": sure.share("weights_", (i,)),
        "bar": float(plane.shares[i] / plane.shares.max()),
        "summary": [row["word"] for row in rows[:10]],
        "rows": rows,
        "near": [(j, number(float(plane.distances[i, j]))) for j in near],
    }
    if use is not None:
        telling = {names[w].casefold() for w in best}
        topic["prevalence"] = percent(float(use.shares[i]))
        topic["documents"] = f"{int(use.main_documents[i]):,}"
        topic["examples"] = [_example(e, names, telling, documents) for e in use.examples[i]]
        if len(use.prevalence) > 1:
            curve = use.prevalence[:, i]
            topic["spark"] = sparkline(curve, f"Prevalence of topic {i} from the first to the last document.")
            topic["peak"] = percent(float(curve.max()))
    return topic


def _row(word: str, here: float, overall: float, largest: float) -> dict[str, Any]:
    """A word of a topic, as the page's script writes it too."""
    return {
        "word": word,
        "bar": here / largest,
        "overall": min(overall / largest, 1.0),
        "share": small_percent(here),
        "lift": number(here / overall),
    }


def small_percent(value: float) -> str:
    """A probability of a word in percent, two digits."""
    if value < 1e-5:
        return "<0.001%"
    return f"{100 * value:.2g}%" if value < 0.1 else f"{100 * value:.0f}%"


def _script_data(components: Floats, frequencies: Floats, names: list[str], sure: Sure) -> dict[str, Any]:
    """Words that any position of the slider can bring up: their probabilities in the topic and in all."""
    grid = np.linspace(0, 1, round(1 / _STEP) + 1)
    chosen = candidate_words(components, frequencies, WORDS, grid)
    used = np.unique(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.intp)
    place = {int(w): n for n, w in enumerate(used)}
    return {
        "show": WORDS,
        "words": [names[w] for w in used],
        "overall": [_digits(frequencies[w]) for w in used],
        "topics": [
            [[place[int(w)] for w in words], [_digits(components[i, w]) for w in words], *_ends(sure, i, words)]
            for i, words in enumerate(chosen)
        ],
    }


def _ends(sure: Sure, i: int, words: NDArray[np.intp]) -> list[list[float]]:
    """The lower and the upper ends of the intervals of words in a topic."""
    ends = [sure.bounds("components_", (i, int(w))) for w in words]
    return [[_digits(each[side]) for each in ends if each is not None] for side in (0, 1)] if any(ends) else []


def _digits(value: float) -> float:
    return float(f"{value:.5g}")


def _example_texts(inputs: Inputs, use: TopicUse | None) -> dict[int, str]:
    """Texts of the documents that are shown, by number; one pass where the texts come one by one."""
    if inputs.documents is None or use is None:
        return {}
    wanted = {example.document for examples in use.examples for example in examples}
    if callable(inputs.documents):
        last = max(wanted, default=-1)
        texts = enumerate(itertools.islice(inputs.documents(), last + 1))
        found = {i: str(text) for i, text in texts if i in wanted}
        missing = wanted - set(found)
    else:
        n = len(inputs.documents)
        if n != use.n_documents:
            raise ValueError(f"documents must hold a text for each of the {use.n_documents} rows of data, got {n}.")
        found, missing = {i: str(inputs.documents[i]) for i in wanted}, set()
    if missing:
        raise ValueError(f"documents ended before number {min(missing)}: data has {use.n_documents} rows.")
    return found


def _titles(inputs: Inputs, use: TopicUse | None) -> Sequence[Any] | None:
    if inputs.titles is not None and use is not None and len(inputs.titles) != use.n_documents:
        raise ValueError(f"titles must be those of the {use.n_documents} rows of data, got {len(inputs.titles)}.")
    return inputs.titles


def _example(example: Example, names: list[str], telling: set[str], documents: Documents) -> dict[str, Any]:
    text = documents.texts.get(example.document)
    if text is None:
        shown = Markup(", ").join(_marked(names[w], telling) for w in example.words[:24])
    else:
        shown = excerpt(text, telling)
    share = percent(example.share)
    return {"name": documents.name(example.document), "share": share, "text": shown, "words": text is None}


def excerpt(text: str, telling: set[str]) -> Markup:
    """The stretch of a text with the most telling words, which are marked; whole words, ellipses where it was cut."""
    text = " ".join(text.split())
    hits = [m.start() for m in _WORD.finditer(text) if m.group().casefold() in telling]
    start = 0
    if len(text) > _EXCERPT and hits:
        counts = np.searchsorted(hits, np.array(hits) + _EXCERPT - 40) - np.arange(len(hits))
        start = max(hits[int(np.argmax(counts))] - 30, 0)
        start = min(start, len(text) - _EXCERPT)
        start = text.find(" ", start) + 1 if start else 0
    stop = start + _EXCERPT
    if stop < len(text):
        space = text.rfind(" ", start, stop)
        stop = space if space > start else stop
    parts, end = [], start
    for match in _WORD.finditer(text, start, min(stop, len(text))):
        if match.group().casefold() in telling:
            parts += [escape(text[end : match.start()]), _marked(match.group(), telling)]
            end = match.end()
    parts.append(escape(text[end:stop]))
    return Markup("… " if start else "") + Markup("").join(parts) + Markup(" …" if stop < len(text) else "")


def _marked(word: str, telling: set[str]) -> Markup:
    return Markup("<mark>{}</mark>").format(word) if word.casefold() in telling else escape(word)
