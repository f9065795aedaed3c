"""The walk of every model in docs/design.md is that of the tree."""

from __future__ import annotations

from tests.docs_scripts import DOCS, load


def test_the_page_is_what_the_script_writes():
    walk = load("walk")
    text = (DOCS / "design.md").read_text(encoding="utf-8")
    assert text == walk.page(text), "run python docs/walk.py"
    for name in ("LatentDirichletAllocation", "ICA", "CategoricalHMM", "GaussianHMM", "PoissonHMM"):
        model = getattr(walk.odeco, name)  # the script does see the tree
        assert f"| passes | `_passes` in {walk._file(model._passes)}" in text
        assert model._fit_rows is walk.MomentEstimator._fit_rows
        assert model._read_moments is walk.MomentEstimator._read_moments
