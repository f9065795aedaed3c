"""Tables of `python -m benchmarks trust`: won, tied and lost cells, and what the warnings were worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.provenance import Result
from benchmarks.trust_ablation import LOSS, tables
from benchmarks.trust_counts import ASKED
from benchmarks.trust_data import TUNING, Cell
from benchmarks.trust_models import ERRORS

NAME = "trust"
TIE, TIE_OF_ERRORS = 0.001, 0.005  # nats per sample or step; share of a perplexity or an unmixing error
# A variance up to this, in units of the column's, is at the floor: 1e-6 of both for mixtures; for chains the prior of a
# hundred observations on one point.
AT_FLOOR, AT_FLOOR_OF_CHAINS = 2e-6, 1e-4
GROUPS = ("tuning", "judging")
OUTCOMES = ("won", "tied", "lost")


@dataclass(frozen=True)
class Comparison:
    """One of our fits beside the best of the peer's starts that are not degenerate."""

    cell: Cell
    ours: float | None
    best: float
    loss: float  # nats; for errors the share by which ours is larger
    outcome: str
    warned: bool
    time_ratio: float
    unsettled: bool = False  # another seed ends elsewhere

    @property
    def event(self) -> bool:
        return self.outcome == "lost"


def compare(peers: Iterable[dict[str, Any]], fits: Iterable[dict[str, Any]]) -> list[list[Comparison]]:
    """For each cell that both have, our fits, worst first: the middle one stands for the cell."""
    known = {_cell(row): row for row in peers}
    cells = [(_cell(row), row) for row in fits if _cell(row) in known]
    found = [_compare_cell(cell, known[cell], row) for cell, row in cells]
    return [sorted(fit, key=lambda one: -one.loss) for fit in found]


def middle(fits: Sequence[Comparison]) -> Comparison:
    return fits[len(fits) // 2]


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(row["estimator"], row["data"], row["k"], row["channels"], row["noise"])


def _compare_cell(cell: Cell, peer: dict[str, Any], ours: dict[str, Any]) -> list[Comparison]:
    pairs = zip(peer["value"], peer["least_variance"], strict=True)
    fair = [value for value, least in pairs if value is not None and not _at_floor(cell, least)]
    best = (min if cell.estimator in ERRORS else max)(fair) if fair else float("nan")
    budget = sum(peer["seconds"])
    losses = [_loss(cell, value, best) for value in ours["value"]]
    unsettled = max(losses) - min(losses) > _tie(cell)
    found = []
    for seed, value in enumerate(ours["value"]):
        loss = _loss(cell, value, best)
        doubted = ours["verdict"][seed] != "FINE" or ours["warnings"][seed] > 0
        warned = ours["luck"][seed] if "luck" in ours else doubted  # before, nothing was said of luck
        outcome = _outcome(cell, loss, fair=bool(fair), at_floor=_at_floor(cell, ours["least_variance"][seed]))
        found.append(Comparison(cell, value, best, loss, outcome, warned, ours["seconds"][seed] / budget, unsettled))
    return found


def _at_floor(cell: Cell, least: float | None) -> bool:
    limit = AT_FLOOR_OF_CHAINS if "HMM" in cell.estimator else AT_FLOOR
    return least is not None and least <= limit


def _loss(cell: Cell, value: float | None, best: float) -> float:
    if value is None:
        return float("inf")
    return value / best - 1 if cell.estimator in ERRORS else best - value


def _tie(cell: Cell) -> float:
    return TIE_OF_ERRORS if cell.estimator in ERRORS else TIE


def _outcome(cell: Cell, loss: float, *, fair: bool, at_floor: bool) -> str:
    """A degenerate optimum is no fair win, and none to lose to; but losing with one is losing."""
    if fair and loss > _tie(cell):
        return "lost"
    if at_floor or not fair:
        return "degenerate"
    return "won" if loss < -_tie(cell) else "tied"


def report(result: Result) -> None:
    """The page, and the README's table, from a result file."""
    from benchmarks import front_page  # which is made of these results and others

    front_page.write()
    harness.write_between(harness.ROOT / "docs" / f"{NAME}.md", f"benchmark:{NAME}", docs_tables(result))


def docs_tables(result: Result) -> str:
    """Counts by estimator, the warnings, the lost cells; `before` and now side by side."""
    if not result.get("peers") or not result.get("fits"):
        return result.told()
    sections = [name for name in ("before", "fits") if result.get(name)]
    compared = {name: compare(result["peers"], result[name]) for name in sections}
    parts = [
        f"Cells won / tied / lost, the worst loss (nats per sample or step, % of errors) and the time of one fit as a "
        f"share of all the peer's starts (median):\n\n{_counts_table(compared)}",
        *_missing(compared["fits"], result.settings("peers").get("cells")),
        _left_out(compared["fits"]),
        f"Warnings, as a sign that a fit lost, and that another seed ends elsewhere (every fit counts, "
        f"{len(compared['fits'][0])} for each cell):\n\n"
        f"{_warnings_table(compared)}",
        f"Lost cells, the largest loss of each estimator first:\n\n{_lost_table(compared['fits'])}",
        *_suggested(result),
        *_ablation(result),
        result.told(),
        result.machines(),
    ]
    return "\n\n".join(parts)


def _ablation(result: Result) -> list[str]:
    """What each part of the search is worth, where that was measured."""
    if not result.get("ablation"):
        return []
    text = (
        f"What each part of the search for a start is worth, on the {len(result['ablation'])} cells of the tuning data "
        f"whose starts are searched for, one seed: cells that end more than {LOSS} nats behind or ahead of the whole "
        "search, and its time as a share:"
    )
    return [f"{text}\n\n{tables(result['ablation'])}"]


def _suggested(result: Result) -> list[str]:
    """How many components the fits suggest, where that was measured."""
    if not result.get("counts"):
        return []
    header = ["", "data", *(f"suggested, {k} asked for" for k in ASKED), "least BIC", "best held out"]
    rows = [
        [
            row["estimator"],
            row["data"],
            *("" if found is None else str(found) for found in row["suggested"]),
            str(row["bic"]),
            str(row["held_out"]),
        ]
        for row in result["counts"]
    ]
    text = (
        "Components that the default fit suggests (`diagnostics_.suggested_components`; nothing where it cannot tell), "
        "beside the number of 1 to 10 with the least BIC, and with the best likelihood of either half of the data by "
        "the fit to the other:"
    )
    return [f"{text}\n\n{harness.markdown_table(header, rows)}"]


def _counts_table(compared: dict[str, list[list[Comparison]]]) -> str:
    names = _names(compared)
    header = ["", "data", "cells", *(f"{names[s]}{what}" for s in names for what in ("", ", worst", ", time"))]
    everything = [middle(fits) for fits in compared["fits"]]
    estimators = list(dict.fromkeys(one.cell.estimator for one in everything))
    rows = []
    for estimator, group in [*product(estimators, GROUPS), *(("**all**", group) for group in (*GROUPS, "both"))]:
        parts = [_chosen(map(middle, compared[section]), estimator, group) for section in names]
        if parts[-1]:
            rows.append([estimator, group, str(len(parts[-1])), *(text for part in parts for text in _figures(part))])
    return harness.markdown_table(header, rows)


def _names(compared: dict[str, Any]) -> dict[str, str]:
    return {"fits": "now"} if "before" not in compared else {"before": "before", "fits": "now"}


def _chosen(found: Iterable[Comparison], estimator: str, group: str) -> list[Comparison]:
    return [
        one
        for one in found
        if one.outcome in OUTCOMES
        and estimator in (one.cell.estimator, "**all**")
        and group in (one.cell.group, "both")
    ]


def _figures(part: Sequence[Comparison]) -> list[str]:
    if not part:
        return ["", "", ""]
    counts = " / ".join(str(sum(one.outcome == outcome for one in part)) for outcome in OUTCOMES)
    # Shares and nats do not compare: over several estimators the worst is of likelihoods.
    mixed = len({one.cell.estimator in ERRORS for one in part}) > 1
    lost = [one for one in part if one.event and not (mixed and one.cell.estimator in ERRORS)]
    worst = max(lost, key=lambda one: one.loss, default=None)
    return [counts, "" if worst is None else _loss_text(worst), f"{np.median([one.time_ratio for one in part]):.2g}"]


def _loss_text(one: Comparison) -> str:
    if one.ours is None:
        return "failed"
    return f"{one.loss:.1%}" if one.cell.estimator in ERRORS else f"{one.loss:.4f}"


def _missing(found: Sequence[Any], cells: int | None) -> list[str]:
    """Words where the peers were stopped: large cells come last."""
    if cells is None or len(found) >= cells:
        return []
    return [
        f"**{len(found)} of the {cells} cells are compared.** The peers' run was stopped before it came to the others, "
        "which are the costly ones: these counts say less of large data than of small."
    ]


def _left_out(found: Sequence[Sequence[Comparison]]) -> str:
    degenerate = [middle(fits).cell for fits in found if middle(fits).outcome == "degenerate"]
    by_estimator = {name: sum(c.estimator == name for c in degenerate) for name in {c.estimator for c in degenerate}}
    named = ", ".join(f"{name} {count}" for name, count in sorted(by_estimator.items()))
    return (
        "Left out as degenerate (a variance at the floor in a fit of ours that does not lose, or in all peer starts): "
        f"{len(degenerate)} of {len(found)} cells{f' ({named})' if named else ''}. "
        f"Tuning data: {', '.join(TUNING)}; all others judge."
    )


def _warnings_table(compared: dict[str, list[list[Comparison]]]) -> str:
    names = _names(compared)
    header = ["data", "", "fits", "warned", "lost", "both", "precision", "recall"]
    header += ["seeds differ", "both", "precision", "recall"]
    rows = []
    for group, section in product((*GROUPS, "both"), names):
        fits = _chosen([one for cell in compared[section] for one in cell], "**all**", group)
        rows.append([group, names[section], *_warning_figures(fits)])
    return harness.markdown_table(header, rows)


def _warning_figures(fits: Sequence[Comparison]) -> list[str]:
    """How many warned, and of either event: how many it befell, how many had warned of it, precision and recall."""
    warned = sum(one.warned for one in fits)
    figures = [str(len(fits)), str(warned)]
    for event in ("event", "unsettled"):
        found = sum(getattr(one, event) for one in fits)
        both = sum(getattr(one, event) and one.warned for one in fits)
        figures += [str(found), str(both), *(f"{both / total:.2f}" if total else "" for total in (warned, found))]
    return figures


def _lost_table(found: Sequence[Sequence[Comparison]]) -> str:
    header = ["", "data", "k", "group", "ours", "best of the peer", "loss", "warned"]
    lost = [fits for fits in found if middle(fits).event]
    lost.sort(key=lambda fits: (middle(fits).cell.estimator, -middle(fits).loss))
    rows = []
    for fits in lost:
        one = middle(fits)
        ours = "" if one.ours is None else f"{one.ours:.4f}"
        warned = f"{sum(fit.warned for fit in fits)} of {len(fits)}"
        data = (
            f"{one.cell.data}, {one.cell.channels} channels, noise {one.cell.noise:g}"
            if one.cell.channels
            else one.cell.data
        )
        rows.append(
            [
                one.cell.estimator,
                data,
                str(one.cell.k),
                one.cell.group,
                ours,
                f"{one.best:.4f}",
                _loss_text(one),
                warned,
            ]
        )
    return harness.markdown_table(header, rows)
