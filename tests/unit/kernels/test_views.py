"""Cross moments of dense views in one loop are those of their definition."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.kernels.views import add_views
from odeco.moments.views import ViewBasis, ViewMoments, ViewPairs
from odeco.sources.views import ViewBatch

GROUPS = ((0, 3), (1,), (2, 4))
WIDTHS = (3, 17, 1, 6, 9)


def views(rng, n, dtypes):
    """Parts of wider arrays, far from the origin."""
    return [
        rng.normal(1e3, 1.0, (n, d + 2)).astype(dtypes[t % len(dtypes)])[:, 1 : d + 1] for t, d in enumerate(WIDTHS)
    ]


@pytest.mark.parametrize("n", [1, 15, 3000])
@pytest.mark.parametrize("ranks", [(2, 2, 2), (1, 5, 3), (9, 4, 7)])
@pytest.mark.parametrize("dtypes", [(np.float64,), (np.float32,), (np.float32, np.float64)])
@pytest.mark.parametrize("weighed", [False, True])
def test_sums_of_dense_views_match_their_definition(n, ranks, dtypes, weighed):
    rng = np.random.default_rng(n)
    blocks, weights = views(rng, n, dtypes), rng.uniform(0.0, 2.0, n) if weighed else None
    group_of = {t: g for g, group in enumerate(GROUPS) for t in group}
    directions = tuple(rng.standard_normal((d, ranks[group_of[t]])) for t, d in enumerate(WIDTHS))
    basis = ViewBasis(GROUPS, directions, tuple(rng.normal(1e3, 1.0, d) for d in WIDTHS))
    moments = ViewMoments(basis).update(ViewBatch(tuple(blocks), weights))
    x = [block.astype(float) - shift for block, shift in zip(blocks, basis.shifts, strict=True)]
    y = [sum(x[t] @ directions[t] for t in group) for group in GROUPS]
    w = np.ones(n) if weights is None else weights
    # Sums of n products of up to three numbers of size 10, exact differences before them.
    tolerance = {"rtol": 1e-11, "atol": 1e-9 * n}
    for t in range(len(WIDTHS)):
        np.testing.assert_allclose(moments._first[t], w @ x[t], **tolerance)
        for g in range(3):
            assert ((t, g) in moments._cross) == (t not in GROUPS[g])
            if t not in GROUPS[g]:
                np.testing.assert_allclose(moments._cross[t, g], (x[t] * w[:, None]).T @ y[g], **tolerance)
    for g in range(3):
        np.testing.assert_allclose(moments._projected[g], w @ y[g], **tolerance)
    for place, (g, h) in enumerate([(0, 1), (0, 2), (1, 2)]):
        np.testing.assert_allclose(moments._pairs[place], (y[g] * w[:, None]).T @ y[h], **tolerance)
    triples = np.einsum("ia,ib,ic,i->abc", *y, w)
    np.testing.assert_allclose(moments._triples.reshape(ranks), triples, rtol=1e-11, atol=1e-8 * n)
    pairs = ViewPairs(basis).update(ViewBatch(tuple(blocks), weights))
    np.testing.assert_array_equal(pairs._cross[1, 0], moments._cross[1, 0])


SIZES = {
    "groups": [0, 1, 2], "directions": (10,), "ranks": [2, 2, 2], "weights": (0,), "first": (5,), "projected": (6,),
    "cross": (20,), "pairs": (12,), "triples": (8,),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"groups": [0, 1]}, "groups must have size 3"),
        ({"groups": [0, 1, 3]}, "groups must lie between 0 and 2"),
        ({"ranks": [2, 2]}, "ranks must have size 3"),
        ({"ranks": [2, 2, -1]}, "ranks must be 0 or more"),
        ({"directions": (9,)}, "directions must have size 10"),
        ({"weights": (3,)}, "weights must have size 4"),
        ({"first": (4,)}, "first must have size 5"),
        ({"projected": (5,)}, "projected must have size 6"),
        ({"cross": (19,)}, "cross must have size 20"),
        ({"pairs": (11,)}, "pairs must have size 12"),
        ({"triples": (7,)}, "triples must have size 8"),
        ({"triples": (0,)}, "pairs must have size 0"),
    ],
)
def test_sums_of_views_of_wrong_shapes_are_an_error(change, error):
    sizes = SIZES | change
    kinds = {"groups": np.int32, "ranks": np.int64}
    given = [
        np.array(size, dtype=kinds[name]) if isinstance(size, list) else np.zeros(size) for name, size in sizes.items()
    ]
    blocks, origins = [np.zeros((4, d)) for d in (1, 2, 2)], [np.zeros(d) for d in (1, 2, 2)]
    with pytest.raises((ValueError, IndexError), match=error):
        add_views(blocks, origins, *given)
