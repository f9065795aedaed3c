"""Moments of separate machines on one basis: partial_fit == merged files, and different bases are refused."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import odeco
from odeco import (
    ICA,
    CategoricalHMM,
    DawidSkene,
    GaussianHMM,
    GaussianMixture,
    LatentDirichletAllocation,
    MultiViewMixture,
    PoissonHMM,
    ProductMixture,
    SingleTopicModel,
)
from odeco.shared_moments import (
    add_moments,
    fit_moments,
    make_basis,
    merge_moments,
    n_rows,
    read_moments,
    write_moments,
)


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return 4 * rng.standard_normal((4, 6))[rng.choice(4, 3000)] + rng.standard_normal((3000, 6))


@pytest.fixture(scope="module")
def answers():
    """A survey: labels, 0/1 answers and counts, some of them missing; few rows are distinct."""
    rng = np.random.default_rng(1)
    h = rng.choice(3, 3000, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame((rng.random((3000, 5)) < rng.random((3, 5))[h]).astype(float), columns=list("abcde"))
    frame["visits"] = rng.poisson(np.array([1.0, 4.0, 9.0])[h]).astype(float)
    for name in ("colour", "place"):
        kept = rng.random(3000) < 0.7
        frame[name] = np.array(["x", "y", "z"])[np.where(kept, h, rng.integers(3, size=3000))]
    frame.loc[rng.random(3000) < 0.05, "a"] = np.nan
    return frame


CASES = [
    (LatentDirichletAllocation(5, random_state=0), "components_"),
    (SingleTopicModel(5, random_state=0), "components_"),
    (GaussianMixture(4, random_state=0), "means_"),
    (GaussianMixture(4, "diag", random_state=0), "covariances_"),
    (ProductMixture(4, family="gaussian", random_state=0), "means_"),
    (ProductMixture(3, random_state=0), "probabilities_"),
    (ICA(3, random_state=0), "mixing_"),
]


@pytest.mark.parametrize(("model", "learned"), CASES, ids=lambda value: str(value)[:30])
@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")  # of what few rows tell; not what is tested
def test_files_that_are_merged_give_what_partial_fit_gives(model, learned, corpus, points, answers, tmp_path):
    rows = corpus if hasattr(model, "word_scale") else points
    rows = answers if learned == "probabilities_" else rows
    basis = make_basis(model, rows[::3])
    assert n_rows(basis) == 0
    once = deepcopy(basis).partial_fit(rows[:1000]).partial_fit(rows[1000:])  # on the same basis
    for name, part in {"a": rows[:700], "b": rows[700:701], "c": rows[701:]}.items():
        write_moments(add_moments(basis, [part]), tmp_path / f"{name}.odeco-moments", {"day": name})
    parts = [read_moments(tmp_path / f"{name}.odeco-moments") for name in "cab"]
    assert parts[1][1]["day"] == "a"
    merged = merge_moments([part for part, _ in parts])
    assert n_rows(merged) == rows.shape[0]
    fitted = fit_moments(merged)
    # Sums in another order; those of topics are of products in single precision.
    for found, expected in zip(getattr(fitted, learned), getattr(once, learned), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert "moments" in fitted.diagnostics_.method or "cumulants" in fitted.diagnostics_.method
    # Rows do not lie in the files: a part of 1,299 rows has no more than sums of a second thread over one of a row.
    sizes = [(tmp_path / f"{name}.odeco-moments").stat().st_size for name in "abc"]
    assert max(sizes) - min(sizes) < 20_000
    odeco.save(fitted, tmp_path / "model.odeco")
    for found, expected in zip(
        getattr(odeco.load(tmp_path / "model.odeco"), learned), getattr(fitted, learned), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def _views(rng):
    h = rng.choice(3, 2000)
    return [3 * rng.standard_normal((3, 4))[h] + rng.standard_normal((2000, 4)) for _ in range(3)]


def _labels(rng):
    truth = rng.integers(3, size=(600, 1))
    return np.where(rng.random((600, 9)) < 0.7, truth, rng.integers(3, size=(600, 9)))


def _chains(rng, emit):
    """Sixty sequences of forty steps of three states that last."""
    states = np.repeat(rng.integers(3, size=(60, 10)), 4, axis=1)
    return [emit(row)[:, None] for row in states]


OTHERS = [
    (MultiViewMixture(3, basis_size=500, random_state=0), _views, "means_"),
    (DawidSkene(3, random_state=0), _labels, "confusion_"),
    (
        CategoricalHMM(3, n_features=6, random_state=0),
        lambda rng: _chains(rng, lambda row: 2 * row + rng.integers(2, size=row.size)),
        "emissionprob_",
    ),
    (
        GaussianHMM(3, random_state=0),
        lambda rng: _chains(rng, lambda row: 4.0 * row + rng.standard_normal(row.size)),
        "means_",
    ),
    (PoissonHMM(3, random_state=0), lambda rng: _chains(rng, lambda row: rng.poisson(1.0 + 9 * row)), "lambdas_"),
]


def _part(data, rows):
    """Some samples: of all views, or items, or sequences."""
    return (
        [view[rows] for view in data] if isinstance(data, list) and data[0].ndim == 2 and len(data) == 3 else data[rows]
    )


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize(("model", "draw", "learned"), OTHERS, ids=lambda value: type(value).__name__)
@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")
def test_views_crowds_and_chains_are_merged_too(model, draw, learned, tmp_path):
    data = draw(np.random.default_rng(3))
    n = len(data[0]) if learned == "means_" and isinstance(model, MultiViewMixture) else len(data)
    basis = make_basis(model, _part(data, slice(0, n, 2)))
    assert n_rows(basis) == 0
    once = deepcopy(basis).partial_fit(_part(data, slice(0, n)))
    for name, rows in {"a": slice(0, n // 3), "b": slice(n // 3, n)}.items():
        write_moments(add_moments(basis, _part(data, rows)), tmp_path / name)
    merged = merge_moments([read_moments(tmp_path / name)[0] for name in "ba"])
    assert n_rows(merged) == n_rows(once)
    fitted = fit_moments(merged)
    # Sums in another order, and what a few Baum-Welch passes make of their rounding.
    for found, expected in zip(getattr(fitted, learned), getattr(once, learned), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert "moments" in fitted.diagnostics_.method
    other = make_basis(model.__class__(**{**model.get_params(), "random_state": 1}), _part(data, slice(1, n, 2)))
    other.set_params(random_state=0)
    with pytest.raises(ValueError, match="part 2 cannot be added to the first: .*different"):
        merge_moments([merged, other])


@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")
def test_what_does_not_fit_together_is_refused(corpus, points, answers, tmp_path):
    model = GaussianMixture(4, random_state=0)
    first = add_moments(make_basis(model, points[:1000]), points)
    with pytest.raises(ValueError, match="part 2 cannot be added to the first: .*different"):
        merge_moments([first, add_moments(make_basis(model, points[1000:2000]), points)])
    with pytest.raises(ValueError, match="part 2 is of another model"):
        merge_moments([first, add_moments(make_basis(GaussianMixture(3, random_state=0), points[:1000]), points)])
    with pytest.raises(ValueError, match="X has 5 features, but GaussianMixture is expecting 6"):
        add_moments(first, points[:, :5])
    with pytest.raises(ValueError, match="kept of odeco's estimators, got Ridge"):
        make_basis(Ridge(), points)
    table = ProductMixture(3, random_state=0)
    basis = make_basis(table, answers[:1000])
    with pytest.raises(ValueError, match="part 2 cannot be added to the first: .*different"):
        merge_moments([add_moments(basis, answers), add_moments(make_basis(table, answers[1000:2000]), answers)])
    with pytest.raises(ValueError, match="different columns"):
        named = make_basis(table, answers[:1000].replace("x", "w"))
        merge_moments([basis, named])
    with pytest.raises(ValueError, match="'new'"):
        add_moments(basis, answers.assign(colour="new"))
    with pytest.raises(ValueError, match="feature names should match"):
        add_moments(basis, answers[["a", "b"]])
    with pytest.raises(ValueError, match="n_samples=0 is smaller than n_components=3"):
        fit_moments(basis)
    with pytest.raises(ValueError, match="make a basis from a sample first"):
        add_moments(model, points)
    with pytest.raises(ValueError, match="nothing to merge"):
        merge_moments([])
    odeco.save(model.fit(points), tmp_path / "model.odeco")
    with pytest.raises(ValueError, match="holds a model, not moments"):
        read_moments(tmp_path / "model.odeco")


def test_tables_of_two_days_by_the_command_line(answers, tmp_path, monkeypatch, capsys):
    """Product mixtures of CSV files with labels and missing values; a label that the sample lacked is one line."""
    from odeco.cli import main

    monkeypatch.chdir(tmp_path)
    parts = {"sample": answers[::3], "monday": answers[:1200], "tuesday": answers[1200:]}
    for name, part in {**parts, "new": answers[:50].assign(colour="new")}.items():
        part.to_csv(f"{name}.csv", index=False)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["moments", *arguments, "--quiet"])
        return ended.value.code

    assert run("basis", "product-mixture", "sample.csv", "-k", "3", "--seed", "0", "-o", "shared.odeco-basis") == 0
    for day in ("monday", "tuesday"):
        assert run("compute", "shared.odeco-basis", f"{day}.csv", "-o", f"{day}.odeco-moments") == 0
    assert run("fit", "monday.odeco-moments", "tuesday.odeco-moments", "-o", "classes.odeco") == 0
    fitted = odeco.load("classes.odeco")
    basis = read_moments("shared.odeco-basis")[0]
    np.testing.assert_allclose(fitted.means_, deepcopy(basis).partial_fit(answers.to_numpy()).means_, atol=1e-6)
    assert "one pass" in fitted.diagnostics_.method
    capsys.readouterr()
    assert run("compute", "shared.odeco-basis", "new.csv", "-o", "new.odeco-moments") == 1
    assert "'new'" in capsys.readouterr().err


def test_the_command_line_goes_the_whole_way(tmp_path, monkeypatch, capsys):
    """A basis from a sample, two days apart, merged and fitted; a file on another basis is one line on stderr."""
    from odeco.cli import main

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = np.array([f"{topic}{i}" for topic in "abc" for i in range(20)]).reshape(3, 20)
    for name, size in {"sample": 400, "monday": 300, "tuesday": 200}.items():
        lines = [" ".join(rng.choice(words[rng.integers(3)], 30)) for _ in range(size)]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--quiet"])
        return ended.value.code

    assert run("moments", "basis", "single-topic", "sample.txt", "-k", "3", "--out", "shared.odeco-basis") == 0
    for day in ("monday", "tuesday"):
        assert run("moments", "compute", "shared.odeco-basis", f"{day}.txt", "-o", f"{day}.odeco-moments") == 0
    merge = ("moments", "merge", "monday.odeco-moments")
    assert run(*merge, "tuesday.odeco-moments", "-o", "both.odeco-moments") == 0
    assert run("moments", "fit", "both.odeco-moments", "-o", "topics.odeco") == 0
    model = odeco.load("topics.odeco")
    np.testing.assert_allclose(model.weights_, 1 / 3, atol=0.1)  # sampling error of 500 documents: 0.02
    assert model.diagnostics_.method == "moments, one pass"
    with pytest.raises(SystemExit) as ended:
        main(["show", "topics.odeco"])
    assert ended.value.code == 0
    assert run("moments", "basis", "single-topic", "monday.txt", "-k", "3", "--out", "other.odeco-basis") == 0
    assert run("moments", "compute", "other.odeco-basis", "monday.txt", "-o", "other.odeco-moments") == 0
    capsys.readouterr()
    assert run(*merge, "other.odeco-moments", "-o", "no.odeco-moments") == 1
    assert "other.odeco-moments does not go with monday.odeco-moments" in capsys.readouterr().err
    assert not (tmp_path / "no.odeco-moments").exists()
