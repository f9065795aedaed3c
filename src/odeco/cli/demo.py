"""``odeco demo``: topics of two centuries of State of the Union addresses, fitted and reported in seconds."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from odeco.cli.console import Stages
from odeco.cli.options import DEBUG, QUIET
from odeco.cli.printing import print_lines

FOLDER = Path("odeco-demo")
# Words of fewer passages than this are names and figures that no topic shares.
READING = {"stop_words": "english", "min_df": 10}


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for what the demo writes.")
    ] = FOLDER,
    k: Annotated[int, typer.Option("-k", min=1, metavar="NUMBER", help="Number of topics.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="NUMBER", help="Same seed, same result.")] = 0,
    quiet: QUIET = False,
    debug: DEBUG = False,
) -> None:
    """Fit topics to the State of the Union addresses, 1790 to 2021, print them and write a report.

    [bold]Examples[/bold]:

      odeco demo

      odeco demo -k 30 --out /tmp/union
    """
    from odeco.cli.fit import fit_file
    from odeco.cli.model_file import open_model
    from odeco.cli.report import write_page
    from odeco.cli.summaries import part_lines
    from odeco.models.lda.card import CARD

    stages = Stages(quiet=quiet)
    text, model, page = out / "passages.txt", out / "model.odeco", out / "report.html"
    options = ["--stop-words", "english", "--min-df", READING["min_df"], "-k", k, "--seed", seed, "--out", model]
    command = shlex.join(["odeco", "fit", "lda", str(text), *map(str, options)])
    n_passages = write_passages(text)
    print_lines(f"State of the Union addresses, 1790 to 2021, in {n_passages:,} passages: {text}", "")
    print_lines(f"$ {command}")
    data = fit_file(
        CARD, [str(text)], model, n_parts=k, seed=seed, settings={}, reading=dict(READING), stages=stages,
        command=command,
    )  # fmt: skip
    saved = open_model(model)
    print_lines("", *part_lines(saved, top=9))
    print_lines("", f"$ {shlex.join(['odeco', 'report', str(model), str(text), '--out', str(page)])}")
    write_page(saved, data, page, stages)
    print_lines(*next_steps(out).split("\n"))


def write_passages(path: Path) -> int:
    """The passages of the corpus that comes with the package, one per line; gives their number."""
    from odeco.atomic import replacing
    from odeco.datasets import state_of_the_union

    path.parent.mkdir(parents=True, exist_ok=True)
    documents = state_of_the_union().documents
    with replacing(path) as file:
        file.write("".join(f"{document}\n" for document in documents).encode("utf-8"))
    return len(documents)


def next_steps(folder: Path) -> str:
    """What to try now."""
    here = shlex.quote(str(folder))
    return f"""
The report: {folder / "report.html"} (open it in a browser).

Try next:
  odeco show {here}/model.odeco --top 15
  odeco transform {here}/model.odeco {here}/passages.txt --out {here}/topics.csv
  odeco fit lda {here}/passages.txt --stop-words english --ngrams 2 --min-df 20 -k 30 --out {here}/pairs.odeco
  head -100 {here}/passages.txt | odeco fit hmm - --unit characters -k 2 --out {here}/letters.odeco
  odeco fit --help    (your own data: documents, tables, sequences, labels, signals)"""
