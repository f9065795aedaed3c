"""Which latent class models the columns determine: Kruskal's condition beside the rank of the Jacobian."""

from __future__ import annotations

import numpy as np
import pytest

from odeco import MomentWarning, ProductMixture
from odeco.models.product_mixture.identified import not_identified
from odeco.sources.tables import Column, Schema


def schema(*sizes):
    return Schema(tuple(Column(f"x{j}", "categorical", tuple(range(size))) for j, size in enumerate(sizes)))


def directions_that_change_nothing(sizes, k, seed=0):
    """Free parameters less the rank of the Jacobian of all pattern probabilities, at a random point."""
    rng = np.random.default_rng(seed)
    weights, tables = rng.dirichlet(np.ones(k)), [rng.dirichlet(np.ones(size), size=k) for size in sizes]

    def patterns(i, parts):
        joint = np.ones(1)
        for part in parts:
            joint = np.outer(joint, part).ravel()
        return joint

    whole = [patterns(i, [table[i] for table in tables]) for i in range(k)]
    columns = [whole[i] - whole[-1] for i in range(k - 1)]
    for i in range(k):
        for j, size in enumerate(sizes):
            for c in range(1, size):
                step = np.eye(size)[c] - np.eye(size)[0]
                changed = [step if t == j else table[i] for t, table in enumerate(tables)]
                columns.append(weights[i] * patterns(i, changed))
    # Singular values were either above 1e-5 or below 1e-15.
    return len(columns) - np.linalg.matrix_rank(np.stack(columns), tol=1e-10)


@pytest.mark.parametrize(
    ("sizes", "k", "identified"),
    [
        ((2, 2), 3, False),
        ((4,), 2, False),
        ((3, 5), 2, False),
        ((2, 2, 2), 2, True),
        ((2, 2, 2), 3, False),
        ((2, 2, 2, 2), 2, True),
        ((2, 2, 2, 2), 3, False),  # 14 free parameters, 15 free cells, and not determined all the same
        ((2, 2, 2, 2, 2), 3, True),
        ((3, 3, 3), 3, True),
        ((3, 3, 3), 4, False),
        ((2, 2, 6), 3, False),
        ((2, 4, 4, 3), 4, True),
        ((1, 2, 2), 2, False),  # a constant column tells nothing
        ((2,) * 7, 4, True),
    ],
)
def test_the_condition_is_that_of_the_jacobian(sizes, k, identified):
    assert (not_identified(schema(*sizes), k) == "") == identified
    assert (directions_that_change_nothing(sizes, k) == 0) == identified


def test_what_is_said():
    assert "8 free parameters, but only 3 free cells" in not_identified(schema(2, 2), 3)
    assert "Lower n_components to 2, or add columns" in not_identified(schema(2, 2, 2, 2), 3)
    assert "add up to 7, not 8" in not_identified(schema(2, 2, 2, 2), 3)
    assert not_identified(schema(2, 2), 1) == ""
    numbers = Schema((Column("x", "gaussian"),))
    assert not_identified(numbers, 3) == ""  # mixtures of Gaussians are determined by one column


def test_fits_and_streams_warn():
    rng = np.random.default_rng(0)
    few = rng.integers(3, size=(300, 2))
    with pytest.warns(MomentWarning, match="3 components of 2 discrete columns are not identified"):
        model = ProductMixture(3, random_state=0).fit(few)
    assert not model.diagnostics_.ok
    with pytest.warns(MomentWarning, match="not identified"):
        ProductMixture(2, random_state=0).partial_fit(few[:, :1])
