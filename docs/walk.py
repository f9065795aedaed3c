"""Writes the walk of every model through its files into docs/design.md, from the tree: ``python docs/walk.py``."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import odeco
from odeco.fitting.card import Card
from odeco.fitting.estimator import MomentEstimator
from odeco.models.cards import OWN
from odeco.moments.passes import Beside, Mapped, mapped

PAGE = Path(__file__).parent / "design.md"
BEGIN, END = "<!-- the walk: written by docs/walk.py -->\n", "<!-- end of the walk -->\n"
SOURCE = Path(odeco.__file__).parent

# The parts, in the order in which they are run, and the methods that a model gives for each.
PARTS = {
    "rows": ("_open", "_chunks"),
    "passes": ("_passes", "_plan"),
    "theorem": ("_theorem",),
    "likelihood": ("_refine",),
    "names": ("_conclude",),
}


def page(text: str) -> str:
    """The page with the walk as the tree has it now."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{walk()}\n{END}{after}"


def walk() -> str:
    """The walks of all models, and the files of their folders."""
    return "\n".join([*(_model(card) for card in OWN), _folders()])


def _model(card: Card) -> str:
    kind = card.load()
    lines = [f"`{kind.__name__}` ({_file(kind)}){_detour(kind)}", "", "| part | given by | with |", "|---|---|---|"]
    for part, names in PARTS.items():
        given = [getattr(kind, name) for name in names if _is_given(kind, name)]
        if not given:
            continue
        places = [f"`{function.__name__}` in {_file(function)}" for function in given]
        called = [f"`{each.__name__}` in {_file(each)}" for each in _called(kind, given)]
        sums = _unique(name for function in given for name in _sums(function)) if part == "passes" else []
        called += [f"sums {', '.join(f'`{name}`' for name in sums)}"] if sums else []
        lines.append(f"| {part} | {'; '.join(places)} | {'; '.join(called)} |")
    return "\n".join(lines) + "\n"


def _is_given(kind: type, name: str) -> bool:
    """Whether a model has a method of its own, rather than what stands for all."""
    own = getattr(kind, name, None)
    return own is not None and own is not getattr(MomentEstimator, name, None)


def _detour(kind: type) -> str:
    """What a model does that does not go the common way yet."""
    if _is_given(kind, "_passes"):
        return ""
    own = kind._fit_rows if _is_given(kind, "_fit_rows") else kind.fit  # type: ignore[attr-defined]
    return f"; not on the common way yet: `{own.__name__}` in {_file(own)} runs passes and starts of its own"


def _file(thing: Any) -> str:
    return str(Path(inspect.getfile(inspect.unwrap(thing))).relative_to(SOURCE))


def _unique(items: Iterator[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def _tree(function: Callable[..., Any]) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))


def _called(kind: type, methods: list[Any]) -> list[Any]:
    """Functions of other files that some methods of a model call, by other methods if need be: not what all share."""
    found, waiting, seen = [], list(methods), set()
    while waiting:
        method = inspect.unwrap(waiting.pop(0))
        if method in seen:
            continue
        seen.add(method)
        for call in _calls(method):
            target = _resolved(method, call, kind)
            if getattr(target, "__qualname__", "").split(".")[0] in {each.__name__ for each in kind.__mro__}:
                waiting += [target] if inspect.isfunction(target) and not _is_shared(target) else []
            elif inspect.isfunction(target) and not _is_shared(target) and _file(target) != _file(kind):
                found.append(target)
    return _unique(iter(found))


def _is_shared(function: Any) -> bool:
    """Whether a function is part of the common way, or checks what comes in."""
    shared = ("odeco.fitting.estimator", "odeco.fitting.options", "odeco.moments.passes", "odeco.sources.kinds")
    return function.__module__.startswith(shared) or not function.__module__.startswith("odeco.")


def _calls(function: Callable[..., Any]) -> list[ast.Call]:
    """In the order of the text."""
    calls = [node for node in ast.walk(_tree(function)) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda node: (node.lineno, node.col_offset))


def _resolved(function: Callable[..., Any], call: ast.Call, kind: type | None = None) -> Any:
    """What is called, by its name or as a method of ``self`` or ``super()``; None for anything else."""
    called = call.func
    if isinstance(called, ast.Name):
        return inspect.unwrap(function).__globals__.get(called.id)
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
        return getattr(kind, called.attr, None)
    if kind is not None and isinstance(called, ast.Attribute) and ast.unparse(called.value) == "super()":
        names = [each.__name__ for each in kind.__mro__]
        above = kind.__mro__[names.index(function.__qualname__.split(".")[0]) + 1 :]
        return next((vars(each)[called.attr] for each in above if called.attr in vars(each)), None)
    return None


def _sums(function: Callable[..., Any], seen: tuple[Any, ...] = ()) -> Iterator[str]:
    """Names of the sums that a generator hands out, or those that it goes on to, in the order of the text."""
    nodes = [node for node in ast.walk(_tree(function)) if isinstance(node, (ast.Yield, ast.Call))]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(node, ast.Call):
            found = _resolved(function, node)
            if inspect.isgeneratorfunction(found) and found is not mapped and found not in seen:
                yield from _sums(found, (*seen, found))
        elif isinstance(node.value, ast.Call):
            asked = _resolved(function, node.value)
            if asked is Mapped and isinstance(node.value.args[0], ast.Call):
                asked = _resolved(function, node.value.args[0])
            if asked not in (None, Beside, Mapped):
                yield asked.__name__


def _folders() -> str:
    """The first line of every file of the models."""
    lines = ["| file | what is in it |", "|---|---|"]
    for path in sorted((SOURCE / "models").rglob("*.py")):
        name = path.relative_to(SOURCE)
        if path.name != "__init__.py":
            text = inspect.getdoc(import_module(f"odeco.{'.'.join(name.with_suffix('').parts)}")) or ""
            lines.append(f"| {name} | {' '.join(text.split(chr(10) * 2)[0].split())} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
