"""What the targets that read models share: files that `save` wrote, forgeries of them, and a user with questions."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import odeco
from fuzz.cases import is_clean
from fuzz.mutations import Rng, choose, mutate_array, mutate_document
from odeco import archive
from odeco.persistence import VERSION
from tests.saved_models import GOLDEN

FILES = sorted((Path(__file__).parents[1] / "tests" / "data" / "models").glob("v*/*.odeco"))
CASES = {case.name: case for case in GOLDEN}


def forge(rng: Rng, source: Path, target: Path, kind: str = "model", version: int = VERSION) -> None:
    """A file with right checksums and some of its contents changed."""
    _, document, arrays = archive.read(source, kind, version)
    for _ in range(int(rng.geometric(0.6))):
        if arrays and rng.random() < 0.6:
            name = choose(rng, arrays)
            arrays[name] = mutate_array(rng, arrays[name])
        else:
            mutate_document(rng, document.get("learned", document))
    with suppress(ValueError):  # names and numbers that not even a forger can write
        archive.write(target, kind, version, document, arrays)
        return
    archive.write(target, kind, version, document, {})


def load(path: Path) -> Any:
    """The model of a file. Whatever is wrong with it, the file is what is blamed."""
    try:
        return odeco.load(path)
    except odeco.ModelFileError:
        raise
    except Exception as error:
        raise AssertionError(f"load raised {type(error).__name__}, not ModelFileError") from error


def ask(model: Any, name: str, folder: Path) -> None:
    """Everything that a user asks of a model; each question may be refused, none may do worse."""
    case = CASES[name]
    data = case.chunks()
    questions = [(answer, data[0]) for answer in case.answers]
    questions += [("sample", 7)] if hasattr(model, "sample") else []
    questions += [("partial_fit", data[2])] if hasattr(model, "partial_fit") else []
    for question, argument in questions:
        _answer(lambda question=question, argument=argument: getattr(model, question)(argument))
    _answer(lambda: odeco.save(model, folder / "again.odeco"))
    _answer(lambda: print(model, getattr(model, "diagnostics_", ""), file=io.StringIO()))


def _answer(call: Any) -> None:
    try:
        call()
    except Exception as error:
        if not is_clean(error):
            raise
