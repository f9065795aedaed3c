"""`odeco intervals`, and where its files are shown."""

from __future__ import annotations

import json

import numpy as np
import pytest

import odeco
from odeco import shared_moments
from odeco.uncertainty import read_intervals, write_intervals
from tests.command_line import FITS, call, write_rows, written
from tests.fitted_models import made_up_intervals


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, a model that was fitted to it by a command, and its intervals."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(0, 1, (150, 3)), rng.normal(5, 1, (100, 3))]).round(4)
    write_rows(folder / "table.csv", ["length", "width", "height"], rows.tolist())
    fit = call("fit", "gaussian-mixture", folder / "table.csv", "-k", "2", "--out", folder / "model.odeco")
    assert fit.returncode == 0, fit.stderr
    done = call("intervals", folder / "model.odeco", folder / "table.csv", "--seed", "0", "--out", folder / "all.csv")
    assert done.returncode == 0, done.stderr
    assert "95% intervals of weights_, means_, covariances_ (sandwich); every component replicates" in done.stderr
    return folder, rows


def test_the_table_is_that_of_python(made):
    folder, rows = made
    found = read_intervals(folder / "all.csv")
    expected = odeco.intervals(odeco.load(folder / "model.odeco"), rows, random_state=0)
    np.testing.assert_allclose(found.low["means_"], expected.low["means_"], rtol=1e-9)
    np.testing.assert_allclose(found.replication, expected.replication, rtol=1e-9)


def test_json_on_stdout_and_options(made):
    folder, _ = made
    arguments = ("intervals", folder / "model.odeco", folder / "table.csv", "--out")
    done = call(*arguments, folder / "few.json", "--method", "replicates", "--replicates", "10", "--level", "0.8")
    assert done.returncode == 0, done.stderr
    stored = json.loads((folder / "few.json").read_text())
    assert (stored["method"], stored["n_replicates"], stored["level"]) == ("replicates", 10, 0.8)
    assert call(*arguments, "-").stdout.startswith("attribute,item,index,part,value,standard_error,low,high")
    assert ".csv or .json" in call(*arguments, folder / "x.parquet").stderr
    assert "is not one of" in call(*arguments, folder / "x.csv", "--method", "guess").stderr


def test_show_marks_what_did_not_replicate(made):
    folder, _ = made
    plain = call("show", folder / "model.odeco", "--intervals", folder / "all.csv").stdout
    assert "every component replicates" in plain
    found = read_intervals(folder / "all.csv")
    found.replication[1] = 0.3
    write_intervals(found, folder / "lost.csv")
    shown = call("show", folder / "model.odeco", "--intervals", folder / "lost.csv").stdout
    assert "component 1 did not replicate" in shown
    told = json.loads(call("show", folder / "model.odeco", "--intervals", folder / "lost.csv", "--json").stdout)
    assert told["intervals"]["replication"][1] == 0.3


def test_intervals_of_another_model_are_refused(made):
    folder, rows = made
    other = odeco.GaussianMixture(1, random_state=0).fit(rows)
    write_intervals(odeco.intervals(other, rows, replication=False), folder / "other.csv")
    done = call("show", folder / "model.odeco", "--intervals", folder / "other.csv")
    assert done.returncode == 1
    assert "holds intervals of another model" in done.stderr


def test_the_report_has_a_section(made):
    folder, _ = made
    page = folder / "report.html"
    done = call("report", folder / "model.odeco", "--intervals", folder / "all.csv", "--out", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "How sure" in text
    assert "Estimates with 95% intervals" in text
    assert "height" in text


def test_files_of_moments_are_the_data(made):
    folder, rows = made
    model = odeco.load(folder / "model.odeco")
    basis = shared_moments.make_basis(model, rows)
    paths = [folder / f"{place}.moments" for place in range(10)]
    for path, block in zip(paths, np.array_split(np.random.default_rng(0).permutation(rows), 10), strict=True):
        shared_moments.write_moments(shared_moments.add_moments(basis, block), path)
    done = call("intervals", folder / "model.odeco", *paths, "--seed", "0", "--out", folder / "sums.csv")
    assert done.returncode == 0, done.stderr
    assert read_intervals(folder / "sums.csv").method == "block sums"


@pytest.mark.parametrize("name", ["lda", "multiview", "dawid-skene", "gaussian-hmm"])  # each kind of rows
def test_data_of_every_kind_from_its_file(name, tmp_path):
    data, model, out = written(name, tmp_path), tmp_path / "model.odeco", tmp_path / "sure.csv"
    arguments = [data if each == "FILE" else each for each in FITS[name][0]]
    assert call("fit", name, *arguments, "--seed", "0", "--out", model).returncode == 0
    done = call("intervals", model, data, "--replicates", "10", "--seed", "0", "--out", out)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "page.html"
    assert call("report", model, "--intervals", out, "--out", page).returncode == 0
    assert "How sure" in page.read_text(encoding="utf-8")
    assert "replicate" in call("show", model, "--intervals", out).stdout


def test_files_that_are_not_held_in_memory(made, monkeypatch):
    """Batches are read again and again: the numbers are those of memory."""
    from odeco.cli import data

    folder, _ = made
    monkeypatch.setattr(data, "HELD_BYTES", 0)
    done = call("intervals", folder / "model.odeco", folder / "table.csv", "--seed", "0", "--out", folder / "far.csv")
    assert done.returncode == 0, done.stderr
    far, near = read_intervals(folder / "far.csv"), read_intervals(folder / "all.csv")
    for name in near.value:
        np.testing.assert_allclose(far.low[name], near.low[name], rtol=1e-5)
    np.testing.assert_allclose(far.replication, near.replication, rtol=1e-9)


def test_the_table_of_latent_classes(tmp_path):
    data, model = written("product-mixture", tmp_path), tmp_path / "model.odeco"
    assert call("fit", "product-mixture", data, "-k", "2", "--seed", "0", "--out", model).returncode == 0
    arguments = ("intervals", model, data, "--out", tmp_path / "sure.csv", "--classes")
    done = call(*arguments, tmp_path / "classes.csv")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "classes.csv").read_text().splitlines()
    assert lines[0] == "class,column,category,estimate,standard_error,low,high"
    names = data.read_text().splitlines()[0].split(",")
    assert {line.split(",")[1] for line in lines[1:]} == {"", *names}
    assert call(*arguments, tmp_path / "sure.csv").returncode == 1  # the other file


def test_classes_of_other_models_are_refused(made):
    folder, _ = made
    arguments = ("intervals", folder / "model.odeco", folder / "table.csv", "--out", folder / "x.csv")
    done = call(*arguments, "--classes", folder / "classes.csv")
    assert done.returncode == 2
    assert "is for product-mixture" in done.stderr


@pytest.mark.parametrize("name", FITS)
def test_show_marks_the_parts_of_every_model(name, tmp_path):
    data, model, out = written(name, tmp_path), tmp_path / "model.odeco", tmp_path / "sure.csv"
    arguments = [data if each == "FILE" else each for each in FITS[name][0]]
    assert call("fit", name, *arguments, "--seed", "0", "--out", model).returncode == 0
    estimator = odeco.load(model)
    write_intervals(made_up_intervals(estimator), out)
    shown = call("show", model, "--intervals", out)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("did not replicate") == 1
    page = tmp_path / "page.html"
    assert call("report", model, "--intervals", out, "--out", page).returncode == 0
    assert "did not replicate" in page.read_text(encoding="utf-8").split('id="certainty"')[0]
