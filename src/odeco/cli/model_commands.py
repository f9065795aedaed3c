"""Subcommands that are made from the cards of the models, with the options of each alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from odeco.cli.console import interruptible
from odeco.cli.help import Command, Group, new_app
from odeco.cli.inputs import READERS, Reader, files_read
from odeco.cli.options import DEBUG, QUIET, check_output, numbers_of_parts, option, setting, with_parameters
from odeco.fitting.card import Card
from odeco.models.cards import card_named, cards

Parameters = Callable[[Card, Reader], list[inspect.Parameter]]


def model_group(
    run: Callable[[Card, dict[str, Any]], None], help: Callable[[Card], str], parameters: Parameters | None = None
) -> type[Group]:
    """A group with a subcommand for each card; made when it is used, for cards can be registered at any time."""
    options = parameters or _fit_parameters

    @cache
    def made(card: Card) -> Any:
        command = with_parameters(lambda values: run(card, values), options(card, READERS[card.rows]))
        one = new_app(add_completion=False)
        one.command(card.name, cls=Command, help=help(card), short_help=card.summary)(interruptible(command))
        return typer.main.get_command(one)

    class Models(Group):
        def list_commands(self, ctx: Any) -> list[str]:
            return [card.name for card in cards()]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            card = card_named(cmd_name)
            if card is None:  # typer looks here for the name that was meant
                self.commands = {name: made(card_named(name)) for name in self.list_commands(ctx)}
            return None if card is None else made(card)

        def summaries(self, ctx: Any) -> list[tuple[str, str]]:
            return [(card.name, card.summary) for card in cards()]

    return Models


def split(card: Card, values: dict[str, Any]) -> tuple[list[str], dict[str, Any], dict[str, Any], Path]:
    """The values of a subcommand: files to read, options of the model, options of the reader, the file to write."""
    paths, settings, reading = given_options(card, values)
    return paths, settings, reading, check_output(values["out"], files_read(paths, reading), stdout=False)


def given_options(card: Card, values: dict[str, Any]) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """The same without the file to write."""
    reader = READERS[card.rows]
    paths = [str(path) for path in (values["input"] if reader.several else [values["input"]])]
    given = {name: value for name, value in values.items() if value is not None}
    settings = {each.name: given[each.name] for each in card.options if each.name in given}
    reading = {each.name: given[each.name] for each in reader.settings if each.name in given}
    return paths, settings, reading


def _fit_parameters(card: Card, reader: Reader) -> list[inspect.Parameter]:
    found = "" if card.count_required else "; found by the model if left out"
    number = f"Number of {card.plural}{found}. With auto, or 2..30, the data choose it."
    return model_parameters(
        card,
        reader,
        [
            option(
                "k", str, number, "-k", required=card.count_required, parser=numbers_of_parts, metavar="NUMBER|auto"
            ),
            option("out", Path, "The model file to write.", "--out", "-o", required=True, metavar="FILE"),
        ],
    )


def model_parameters(card: Card, reader: Reader, own: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """All options of one subcommand: the input, those of its own, then what the model and the reader add."""
    given = inspect.Parameter.POSITIONAL_OR_KEYWORD
    what = typer.Argument(metavar="INPUT..." if reader.several else "INPUT", show_default=False, help=reader.what)
    return [
        inspect.Parameter("input", given, annotation=Annotated[list[str] if reader.several else str, what]),
        *own,
        option("seed", int, "Same seed, same result.", default=0, min=0),
        *(_in_panel(setting(each), "Options of the model") for each in card.options),
        *(_in_panel(each, "Options of the input") for each in reader.settings),
        inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QUIET),
        inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=DEBUG),
    ]


def _in_panel(parameter: inspect.Parameter, panel: str) -> inspect.Parameter:
    parameter.annotation.__metadata__[0].rich_help_panel = panel
    return parameter
