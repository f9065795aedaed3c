"""The card of `MultiViewMixture`, and the sums of three views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from odeco.fitting.card import Card, Option, Stored, shapes
from odeco.models.card_parts import EFFORT, MAX_ITER, MIXTURE, SMOOTHING, TOL, refine

_LIKELIHOODS = ("gaussian", "bernoulli", "poisson", "multinomial")
_AMONG = f"among {' '.join(_LIKELIHOODS)}"


def _share_out_the_views(basis: Any) -> bool:
    """Three groups that share out the views; those of a group have as many directions."""
    views = sorted(view for group in basis.groups for view in group)
    if views != list(range(len(basis.directions))) or not all(basis.groups):
        return False
    return all(len({basis.directions[view].shape[1] for view in group}) == 1 for group in basis.groups)


def _as_the_basis_asks(moments: Any) -> bool:
    """Sums of the sizes that the basis asks for."""
    import numpy as np

    widths, (a, b, c) = moments.basis.widths, moments.basis.ranks()
    outside = [(t, g) for t in range(len(widths)) for g in range(3) if t not in moments.basis.groups[g]]
    return (
        _shapes_of(moments._first) == [(width,) for width in widths]
        and _shapes_of(moments._projected) == [(a,), (b,), (c,)]
        and _shapes_of(moments._pairs) == [(a, b), (a, c), (b, c)]
        and moments._triples.shape == (a * b, c)
        and list(moments._cross) == outside
        and all(array.dtype == np.float64 and np.isfinite(array).all() for array in moments._cross.values())
        and _shapes_of(moments._cross.values()) == [(widths[t], (a, b, c)[g]) for t, g in outside]
    )


def _shapes_of(arrays: Iterable[Any]) -> list[tuple[int, ...]]:
    import numpy as np

    return [np.shape(array) for array in arrays]


THREE_VIEWS: Mapping[str, Stored] = {
    "ViewBasis": Stored(
        "odeco.moments.views:ViewBasis",
        "v",
        shapes("groups: list 3 of list of whole, directions: list v of finite w# *, shifts: list v of finite w#"),
        _share_out_the_views,
    ),
    "ViewMoments": Stored(
        "odeco.moments.views:ViewMoments",
        "",
        shapes(
            "basis: ViewBasis, n: whole, weight: finite-number, _first: list of finite *, "
            "_pairs: list 3 of finite * *, _projected: list 3 of finite *, _cross: mapping, "
            "_triples: finite * *"
        ),
        _as_the_basis_asks,
    ),
}

CARD = Card(
    "multiview",
    "odeco.models.multiview.estimator:MultiViewMixture",
    "views",
    "component",
    "Groups seen in three or more views of the same samples, a file for each view.",
    options=(
        Option(
            "likelihood",
            str,
            "What is assumed of all views, or of each in turn (repeat it).",
            choices=("auto", *_LIKELIHOODS),
            several=True,
        ),
        refine("em", "one-step", "least-squares"),
        EFFORT,
        SMOOTHING,
        MAX_ITER,
        TOL,
    ),
    examples=(
        "odeco fit multiview pixels.npy words.npz tags.csv -k 5 --out groups.odeco",
        "odeco fit multiview all.csv --view a1,a2,a3 --view b1,b2 --view c1,c2,c3 -k 3 --out groups.odeco",
    ),
    learned={
        **MIXTURE,
        "view_widths_": "list v of whole w#",
        "means_": "list v of finite k w#",
        "variances_": "list v of ?nonnegative k w#",
        "likelihoods_": f"list v of {_AMONG}",
        "groups_": "maybe list of list of whole",
        "_model": "ViewModel v",
        "_kinds": "ViewKinds v",
        "_stream": "maybe stream StreamedViews v; ViewBatch v",
    },
    stored={
        **THREE_VIEWS,
        "ColumnSums": Stored(
            "odeco.moments.views:ColumnSums",
            "v",
            shapes(
                "widths: list v of whole w#, n: whole, weight: finite-number, _shifts: ?list v of finite w#, "
                "_sums: list v of finite w#, _squares: list v of finite w#"
            ),
        ),
        "ViewBasisSearch": Stored(
            "odeco.models.multiview.moments:BasisSearch",
            "",
            shapes("basis: ViewBasis, singular_values: float *, n_passes: whole"),
        ),
        "ViewKinds": Stored(
            "odeco.models.multiview.likelihoods:ViewKinds",
            "v",
            shapes(
                "positive: flags v, whole: flags v, binary: flags v, sparse: flags v, _least_sum: float v, "
                "_most_sum: float v"
            ),
        ),
        "ViewLook": Stored(
            "odeco.models.multiview.likelihoods:ViewLook", "v", shapes("columns: ColumnSums v, kinds: ViewKinds v")
        ),
        "ViewModel": Stored(
            "odeco.refinement.views:ViewModel",
            "v",
            {
                "likelihoods": f"list v of {_AMONG}",
                "centers": "list v of finite w#",
                "floors": "list v of nonnegative w#",
                "smoothing": "finite-number",
            },
        ),
        "StreamedViews": Stored(
            "odeco.models.multiview.stream:StreamedViews",
            "v",
            shapes("search: ViewBasisSearch, look: ViewLook v, moments: ViewMoments"),
        ),
    },
    parts="odeco.plots.parts:view_columns",
    frame="odeco.plots.frames:view_frame",
    page="odeco.report.classes:multiview_page",
    plots=("view_profiles", "membership"),
    centred=True,
)
