"""The application: its commands, and the one place where it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import odeco
from odeco.cli import choose, compare, convert, decompose, demo, fit, intervals, moments, report, show, transform
from odeco.cli.console import fail, interruptible, readable_errors, standard_streams
from odeco.cli.help import Command, Group, complete_names_alone, new_app
from odeco.models.cards import cards


class InTheOrderOfUse(Group):
    """Commands as a person meets them, not groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, for the help."""
        order = ["demo", "choose", "fit", "show", "intervals", "transform", "report", "compare", "convert", "moments"]
        return [*order, "decompose"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, with the models that are known now."""
        self.epilog = f"[bold]Models[/bold] of odeco fit: {', '.join(card.name for card in cards())}."
        super().format_help(ctx, formatter)


app = new_app(name="odeco", cls=InTheOrderOfUse)
app.add_typer(fit.app, name="fit")
app.add_typer(choose.app, name="choose")
app.add_typer(moments.app, name="moments")
app.command("demo", cls=Command)(interruptible(demo.demo))
app.command("show", cls=Command)(interruptible(show.show))
app.command("intervals", cls=Command)(interruptible(intervals.intervals))
app.command("transform", cls=Command)(interruptible(transform.transform))
app.command("report", cls=Command)(interruptible(report.report))
app.command("compare", cls=Command)(interruptible(compare.compare))
app.command("convert", cls=Command, help=convert.HELP)(interruptible(convert.command))
app.command("decompose", cls=decompose.WithMethods)(interruptible(decompose.decompose))


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit; a misspelt command costs one line on stderr and exit code 2."""
    debug = "--debug" in (sys.argv[1:] if args is None else args)
    if "_ODECO_COMPLETE" in os.environ:
        complete_names_alone()
    with standard_streams(), readable_errors(debug):
        try:
            code = app(args, prog_name="odeco", standalone_mode=False)
        except Exception as error:
            # typer's own errors are known by what they can do: their classes are not public in every version.
            if not hasattr(error, "format_message"):
                raise
            message, code = " ".join(error.format_message().split()), getattr(error, "exit_code", 2)
            fail(f"{message} (see '{_path(error)} --help')", code)
        sys.stdout.flush()  # a full disk behind stdout is found here, not while Python shuts down
    sys.exit(code if isinstance(code, int) else 0)


def _path(error: Exception) -> str:
    """The command whose help is worth reading."""
    return str(getattr(getattr(error, "ctx", None), "command_path", None) or "odeco")


def show_version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        typer.echo(f"odeco {odeco.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Latent variable models by the method of moments, from a file to a report.

    [bold]Begin here[/bold] (fits topics to two centuries of State of the Union addresses, in seconds):

      odeco demo

    [bold]Then with your own data[/bold], a document per line:

      odeco fit lda articles.txt -k 20 --out topics.odeco

      odeco show topics.odeco

      odeco report topics.odeco articles.txt --out topics.html
    """
