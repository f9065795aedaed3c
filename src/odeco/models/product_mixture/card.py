"""The card of `ProductMixture`, and the sums of a stream of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odeco.fitting.card import Card, Option, Stored, shapes
from odeco.models.card_parts import EFFORT, MAX_ITER, MIXTURE, TOL, refine

_FAMILIES = ("gaussian", "bernoulli", "categorical", "poisson")


def _one_family_each(families: Any) -> bool:
    """Each column belongs to one family."""
    import numpy as np

    columns = np.concatenate([families.numbers, families.categorical])
    return bool((np.sort(columns) == np.arange(families.centre.size)).all()) and bool((families.sizes > 0).all())


def _of_the_columns(sums: Any) -> bool:
    """Sums over the features of the columns."""
    import numpy as np

    found = sums.reference.features, sums.triples.features
    expected = [type(features).of(sums.schema, features.centre, features.scale) for features in found]
    return all(
        np.array_equal(a.owner, b.owner) and np.array_equal(a.onehot, b.onehot)
        for a, b in zip(found, expected, strict=True)
    )


def _check(parameters: Mapping[str, Any], learned: Mapping[str, Any]) -> None:
    """The columns of a table by three accounts: schema, families, and the parameters of a component."""
    import numpy as np

    if "_families" not in learned:
        return
    families, schema = learned["_families"], learned["_schema"]
    expected = type(families).of(schema, families.centre, families.scale)
    for name in ("bernoulli", "categorical", "poisson", "gaussian", "sizes"):
        if not np.array_equal(getattr(families, name), getattr(expected, name)):
            raise ValueError(f"_families and _schema disagree about {name}.")
    if tuple(learned["families_"]) != tuple(schema.families) or learned["_table"].shape[1] != families.n_parameters:
        raise ValueError("families_ and _table are not those of _schema.")


TABLES: Mapping[str, Stored] = {
    "ProductFeatures": Stored(
        "odeco.moments.products:FeatureMap",
        "d f",
        shapes("centre: finite d, scale: positive d, owner: places f < d, onehot: flags f"),
    ),
    "ProductSummary": Stored(
        "odeco.models.product_mixture.solve:Summary",
        "d f",
        shapes(
            "features: ProductFeatures d f, mean: finite f, spread: positive f, variance: nonnegative f, "
            "shares: finite d, weight: finite-number"
        ),
    ),
    "ProductTriples": Stored(
        "odeco.moments.products:ProductTriples",
        "d f r",
        shapes(
            "n_features: whole d, features: ProductFeatures d f, basis: finite f r, n: whole, "
            "weight: finite-number, observed: finite d, first: finite f, second: finite f, third: finite f, "
            "projected: finite r, squares: finite f r, cross: finite f r, cubes: finite r r r"
        ),
    ),
    "DistinctRows": Stored(
        "odeco.models.product_mixture.table:DistinctRows", "d", shapes("values: values n d, weights: nonnegative n")
    ),
    "StreamedTable": Stored(
        "odeco.models.product_mixture.stream:StreamedTable",
        "d",
        shapes(
            "schema: Schema d, reference: ProductSummary d f, basis: finite f r, most_distinct: whole, "
            "triples: ProductTriples d f r, distinct: ?DistinctRows d"
        ),
        _of_the_columns,
    ),
}

CARD = Card(
    "product-mixture",
    "odeco.models.product_mixture.estimator:ProductMixture",
    "mixed",
    "class",
    "Latent classes of answers, codes, counts and numbers in one table; values may be missing.",
    options=(
        Option(
            "family",
            str,
            "Family of all columns, or of each in turn (repeat it).",
            choices=("auto", *_FAMILIES),
            several=True,
        ),
        refine("em", "one-step"),
        EFFORT,
        MAX_ITER,
        TOL,
    ),
    examples=(
        "odeco fit product-mixture survey.csv -k 4 --out classes.odeco",
        "odeco fit product-mixture votes.parquet -k 2 --family categorical --out votes.odeco",
    ),
    learned={
        **MIXTURE,
        "means_": "finite k d",
        "variances_": "nonnegative k d",
        "_schema": "Schema d",
        "_families": "Families d",
        "families_": f"list d of among {' '.join(_FAMILIES)}",
        "probabilities_": "list c of simplex k c#",
        "categories_": "list c of any c#",
        "_table": "finite k q",
        "_stream": "maybe stream StreamedTable d; TableChunk d",
    },
    stored={
        **TABLES,
        "Families": Stored(
            "odeco.families.tables:Families",
            "d",
            shapes(
                "centre: finite d, scale: positive d, bernoulli: places * < d, categorical: places c < d, "
                "poisson: places * < d, gaussian: places * < d, sizes: places c, masked: places * < d"
            ),
            _one_family_each,
        ),
    },
    check=_check,
    parts="odeco.plots.parts:columns",
    frame="odeco.plots.frames:column_frame",
    page="odeco.report.classes:mixture_page",
    plots=("profiles", "membership", "scatter"),
    centred=True,
)
