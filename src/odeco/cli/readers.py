"""One function per kind of data: the files that were named, read by `odeco.files`, as `Data`.

Each takes the paths, the options that were given, the metadata of the model that the data are for (empty in `fit`,
which makes one) and the stage that counts the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from odeco.cli.console import Stage
from odeco.cli.data import Data, Options, held, joined_rows, joined_views

if TYPE_CHECKING:
    from odeco.text import Vectorizer

# Words in more than half of the documents are the grammar of their language rather than anyone's topic.
MAX_DF = 0.5
# Options that say which words of a text are counted.
TEXT_OPTIONS = ("min_df", "max_df", "max_features", "stop_words", "ngrams")


def read_counts(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """Documents as counts of words; texts are counted by a vectorizer, that of the model if there is one."""
    from odeco import files
    from odeco.sources.arrays import stack_rows

    given = [name for name in TEXT_OPTIONS if name in options]
    place = _only(options, "format", "column", "encoding", "vocabulary")
    words = known.get("vocabulary")
    if known.get("text") is None and words is not None:
        place["vocabulary"] = words  # the model was fitted to counts: its words in the order of its columns
    elif not known or words is not None:
        place["vectorizer"] = lambda: _Watched(_vectorizer(options, known), stage)
    counts = files.read_counts(paths[0], **place)
    if counts.vectorizer is not None and not known and options.get("stop_words", "auto") == "auto":
        stage.notes += _said_of_language(counts.vectorizer)
    if counts.vectorizer is None and given:
        raise ValueError(f"{paths[0]} holds counts ({counts.format}): --{_flag(given[0])} is for text.")
    whole = held(stage.watch(lambda: counts.source), lambda parts: stack_rows([part.counts for part in parts]))
    return Data(
        (counts.source if whole is None else whole,),
        counts.format,
        {"vocabulary": counts.vocabulary},
        None if whole is None else whole.shape[0],
        text=None if counts.vectorizer is None else counts.vectorizer.to_dict(),
        documents=counts.documents,
        table=counts.table,
    )


def _said_of_language(vectorizer: Any) -> list[str]:
    """Which language the texts are in, and what was done about it."""
    from odeco.text.stop_words import LANGUAGES, stop_words_of

    code = vectorizer.language_
    if code is None:
        return ["no stop words are left out, for no language was recognised (--stop-words names one)"]
    n = len(stop_words_of(code))
    return [f"{LANGUAGES[code]}, {n} stop words are left out (--stop-words none keeps them)"]


class _Watched:
    """A vectorizer whose reading of the texts, the longest stage of many fits, is seen by a stage."""

    def __init__(self, vectorizer: Vectorizer, stage: Stage) -> None:
        self._vectorizer, self._stage = vectorizer, stage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vectorizer, name)

    def fit_batches(self, batches: Iterable[list[str]]) -> Any:
        """Fit to the batches, counted as they pass."""
        return self._vectorizer.fit_batches(self._stage.watch(lambda: batches)())


def _flag(name: str) -> str:
    return "max-words" if name == "max_features" else name.replace("_", "-")


def _vectorizer(options: Options, known: Options) -> Vectorizer:
    """The vectorizer of the model, or one with the options of the command."""
    from odeco.text import Vectorizer

    if known.get("text") is not None:
        return Vectorizer.from_dict(known["text"], known["vocabulary"])
    settings = {"max_df": MAX_DF, **_only(options, "min_df", "max_df", "max_features")}
    if "ngrams" in options:
        settings["ngram_range"] = (1, options["ngrams"])
    return Vectorizer(**settings, stop_words=_stop_words(options.get("stop_words", "auto")))


def _stop_words(given: str) -> str | list[str] | None:
    from odeco.files.vocabulary import read_vocabulary
    from odeco.text.stop_words import LANGUAGES

    if given == "none":
        return None
    known = ("auto", "english", *LANGUAGES)
    return given if given in known else [word.lower() for word in read_vocabulary(given)]


def read_table(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """Numbers alone: a column of text is an error that says so."""
    return _rows(paths, options, known, stage, mixed=False)


def read_mixed(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """Columns of any kind."""
    return _rows(paths, options, known, stage, mixed=True)


def _rows(paths: Sequence[str], options: Options, known: Options, stage: Stage, *, mixed: bool) -> Data:
    from odeco import files

    table = files.read_table(paths[0], columns=_columns(options, known), **_only(options, "format", "encoding"))
    text = [name for name, kind in zip(table.names, table.kinds, strict=True) if kind == "label"]
    if text and not mixed:
        numbers = [name for name in table.names if name not in text]
        advice = f"choose others with --columns {','.join(numbers)}" if numbers else "it has no others"
        raise ValueError(f"{paths[0]}: text in {', '.join(text[:5])}, and this model needs numbers: {advice}.")
    source = table.source if mixed else lambda: _finite(paths[0], table.source(), table.names)
    whole = held(stage.watch(source), joined_rows)
    return Data(
        (source if whole is None else whole,),
        table.format,
        {"feature_names": table.names},
        None if whole is None else whole.shape[0],
    )


def _finite(path: str, blocks: Iterable[Any], names: Sequence[str]) -> Iterator[Any]:
    """Blocks of numbers as they are; the first that is missing is an error that names its place."""
    import numpy as np

    first = 1
    for block in blocks:
        if not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise ValueError(
                f"{path}: row {first + row} has no number in the column {names[column]!r}: fill it in, drop the row, "
                "or use product-mixture, which takes missing values as they are."
            )
        first += len(block)
        yield block


def _columns(options: Options, known: Options) -> list[str] | None:
    """The columns that are asked for, or those of the model."""
    names: list[str] | None = known.get("feature_names")
    if names is None and "columns" in options:
        names = [name.strip() for name in options["columns"].split(",")]
    return names


def read_views(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """A file for each view, or the columns of one table."""
    from odeco import files

    views = [[name.strip() for name in view.split(",")] for view in options.get("view", [])]
    found = files.read_views(
        paths[0] if len(paths) == 1 else list(paths), views=views or None, **_only(options, "format", "encoding")
    )
    whole = held(stage.watch(found.source), joined_views)
    return Data(
        (found.source if whole is None else whole,),
        ", ".join(found.format),
        {"feature_names": found.names},
        None if whole is None else whole[0].shape[0],
    )


def read_labels(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """Labels of a crowd."""
    from odeco import files
    from odeco.sources.crowd import read_labels as crowd_labels

    place = _only(options, "format", "encoding", "layout")
    columns = options["columns"].split(",") if "columns" in options else None
    found = files.read_labels(paths[0], columns=columns, **place)
    items = crowd_labels(found.X, found.layout).items
    return Data((found.X,), found.format, {}, len(items), {"layout": found.layout}, keys={"item": items})


def read_symbols(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """Sequences of symbols, numbered as the model numbers them."""
    return _sequences("symbols", paths, options, known)


def read_features(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """Sequences of measurements."""
    return _sequences("features", paths, options, known)


def read_events(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """Sequences of counts."""
    return _sequences("counts", paths, options, known)


def _sequences(kind: str, paths: Sequence[str], options: Options, known: Options) -> Data:
    import numpy as np

    from odeco import files

    place = _only(options, "format", "encoding", "unit", "sequence")
    columns = _columns(options, {}) if kind == "symbols" or "columns" in options else None
    found = files.read_sequences(paths[0], kind, columns=columns, symbols=known.get("symbols"), **place)
    lengths = np.asarray(found.lengths)
    steps = np.arange(len(found.X)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    names = {"symbols": found.symbols} if kind == "symbols" else {"feature_names": found.names}
    keys = {"sequence": np.repeat(np.arange(len(lengths)), lengths), "step": steps}
    return Data((found.X, lengths), found.format, names, len(found.X), keys=keys)


def read_signals(paths: Sequence[str], options: Options, known: Options, stage: Stage) -> Data:
    """Samples of several channels."""
    from odeco import files

    place = _only(options, "format", "encoding")
    found = files.read_signals(paths[0] if len(paths) == 1 else list(paths), columns=_columns(options, known), **place)
    whole = held(stage.watch(found.source), joined_rows)
    return Data(
        (found.source if whole is None else whole,),
        found.format,
        {"feature_names": found.names, "rate": found.rate},
        None if whole is None else whole.shape[0],
    )


def _only(options: Options, *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}
