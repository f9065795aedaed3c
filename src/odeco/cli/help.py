"""The pages of ``--help``: sections, examples that can be copied, bold words and colours where a person looks.

typer would draw them with rich, which takes as long to load as NumPy; its plain pages leave the groups of options out.
These are written with typer's plain formatter from what the commands say of themselves.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_BOLD = re.compile(r"\[bold\](.*?)\[/bold\]")
# Lines that are longer than this are hard to read, however wide the terminal is.
CONTEXT = {"max_content_width": 100}


def plain(text: str) -> str:
    """A text without the marks of bold words."""
    return _BOLD.sub(r"\1", text)


def styled(text: str, **style: Any) -> str:
    """Text in bold and, unless NO_COLOR asks for none, in colour; as it is where no person looks."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return text
    return typer.style(text, bold=True, **({} if os.environ.get("NO_COLOR") else style))


def complete_names_alone() -> None:
    """Keep typer from loading what no completion needs, for a shell waits while somebody types.

    rich would look for marks in the help of each name, pydantic would check values that are not complete. None for a
    module is Python's own word for "not there", which typer takes well; the process ends with the completion.
    """
    sys.modules.update(dict.fromkeys(["rich", "pydantic"]))  # type: ignore[arg-type]


class _Page:
    """What commands and groups have in common: how each part of the page is written."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options. A flag that is not given is False: to find out what None would mean, typer loads pydantic."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in found:
            if each.default is None and getattr(each, "is_flag", False):
                each.default = False
        return found

    def format_help_text(self: Any, ctx: Any, formatter: Any) -> None:
        """What the command does, and examples."""
        _write(formatter, self.help)

    def format_epilog(self: Any, ctx: Any, formatter: Any) -> None:
        """What stands below everything else."""
        _write(formatter, self.epilog)

    def format_options(self: Any, ctx: Any, formatter: Any) -> None:
        """Arguments, options by their groups, commands: a section each."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(_section(parameter), []).append((_name(parameter, record[0]), record[1]))
        if hasattr(self, "summaries"):
            sections["Commands"] = self.summaries(ctx)
        for title, rows in sections.items():
            _write_section(formatter, title, rows)

    def shell_complete(self: Any, ctx: Any, incomplete: str) -> list[Any]:
        """What a shell offers, with words that no terminal has to make bold."""
        items: list[Any] = super().shell_complete(ctx, incomplete)  # type: ignore[misc]
        for item in items:
            item.help = item.help and plain(item.help)
        return items


class Command(_Page, TyperCommand):
    """A command with such a page."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What may follow the name of the command: arguments are called as they are below."""
        given = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(_name(each, "") for each in given)]


class Group(_Page, TyperGroup):
    """A group of commands with such a page."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A group alone is a question: its page is the answer, but no command was run."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def summaries(self, ctx: Any) -> list[tuple[str, str]]:
        """The commands, each with a line on what it does."""
        commands = [self.get_command(ctx, name) for name in self.list_commands(ctx)]
        return [(str(each.name), _first_paragraph(each)) for each in commands if each is not None]


def new_app(**options: Any) -> typer.Typer:
    """An application, or a group of commands for one, whose pages are these."""
    options = {"cls": Group, "context_settings": CONTEXT, **options}
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, **options)


def _section(parameter: Any) -> str:
    """Where a parameter stands: in its own group of options, or among all others."""
    usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
    return getattr(parameter, "rich_help_panel", None) or usual


def _name(parameter: Any, recorded: str) -> str:
    """As it is typed. Of an argument, its name alone: the help says what it is."""
    return parameter.metavar or parameter.name.upper() if parameter.param_type_name == "argument" else recorded


def _first_paragraph(command: Any) -> str:
    text = command.short_help or inspect.cleandoc(command.help or "").partition("\n\n")[0]
    return " ".join(text.split())


def _write_section(formatter: Any, title: str, rows: Sequence[tuple[str, str]]) -> None:
    formatter.write_paragraph()
    formatter.write(f"{styled(title)}:\n")
    with formatter.indentation():
        formatter.write_dl([(styled(name, fg="cyan"), _marked(text)) for name, text in rows])


def _write(formatter: Any, text: str | None) -> None:
    if text:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_marked(_together(inspect.cleandoc(text))))


def _marked(text: str) -> str:
    """Bold words in bold. Older versions of typer write "[required]" for rich, with a backslash."""
    return _BOLD.sub(lambda found: styled(found[1]), text.replace("\\[", "["))


def _together(text: str) -> str:
    """Examples, which are indented, one under the other and none broken: they are there to be copied."""
    blocks: list[str] = []
    for paragraph in text.split("\n\n"):
        if not paragraph.startswith(" "):
            blocks.append(paragraph)
        elif blocks and blocks[-1].startswith("\b"):
            blocks[-1] += f"\n{paragraph}"
        else:
            blocks.append(f"\b\n{paragraph}")
    return "\n\n".join(blocks)
