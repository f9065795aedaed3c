"""Documents by title, prevalence along real dates, and where words find room beside circles."""

from __future__ import annotations

import re
from copy import copy
from datetime import UTC, date, datetime

import numpy as np
import pytest

from odeco.plots import topic_use
from odeco.report.dates import timeline
from odeco.report.map_labels import SIZE, labels_beside
from odeco.report.render import render_report
from tests.command_line import call
from tests.fitted_models import fitted_model


@pytest.mark.parametrize(
    ("dates", "first", "last"),
    [
        ([1999, 2001, 2000], "1999", "2001"),
        (["2021-06-30", "2020-01-01"], "2020-01-01", "2021-06-30"),
        (["1850", "1849"], "1849", "1850"),
        ([date(2020, 5, 1), datetime(2020, 5, 2, 12, tzinfo=UTC)], "2020-05-01", "2020-05-02"),
        ([np.datetime64("2020-05-01"), np.datetime64("2019-05-01")], "2019-05-01", "2020-05-01"),
        ([2000.0], "2000", "2000"),
    ],
)
def test_dates_in_many_forms(dates, first, last):
    found = timeline(dates)
    assert (found.first, found.last) == (first, last)
    order = np.argsort(found.places, kind="stable")
    assert [found.names[i] for i in order] == sorted(found.names)


@pytest.mark.parametrize("dates", [["soon"], [None], [True], [1.5], []])
def test_what_is_no_date_is_told(dates):
    with pytest.raises(ValueError, match="dates"):
        timeline(dates)


def test_prevalence_of_given_bins_is_that_of_their_documents():
    model, inputs = fitted_model("lda")
    counts = inputs["data"]
    places = np.arange(counts.shape[0])[::-1] % 4
    found = topic_use(model, lambda: (counts[i : i + 37] for i in range(0, counts.shape[0], 37)), places=places)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    words = model.transform(counts) * lengths[:, None]
    for place in range(4):
        mine = words[places == place].sum(axis=0)
        np.testing.assert_allclose(found.prevalence[place], mine / mine.sum(), rtol=1e-5)
    with pytest.raises(ValueError, match="must be those of the"):
        topic_use(model, counts, places=places[:-1])


def test_the_page_names_documents_and_dates():
    model, inputs = fitted_model("lda")
    n = inputs["data"].shape[0]
    page = render_report(
        model, **inputs, titles=[f"Title <{i}>" for i in range(n)], dates=[1900 + i % 50 for i in range(n)]
    )
    assert "Title &lt;" in page
    assert "1900 to 1949" in page
    assert "first to last document" in render_report(model, **inputs)
    with pytest.raises(ValueError, match="titles must be those of"):
        render_report(model, **inputs, titles=["one"])
    mixture, rows = fitted_model("gaussian_mixture")
    with pytest.raises(ValueError, match="documents of a topic model"):
        render_report(mixture, **rows, titles=["one"])


def test_the_list_is_sorted_by_share():
    model, inputs = fitted_model("lda")
    turned = copy(model)
    turned.alpha_, turned.components_ = model.alpha_[::-1], model.components_[::-1]
    page = render_report(turned, **inputs)
    shown = [int(number) for number in re.findall(r'<tr data-topic="(\d+)"', page)]
    assert shown == np.argsort(-turned.alpha_, kind="stable").tolist() != [0, 1, 2]


def test_labels_cover_neither_circles_nor_one_another():
    rng = np.random.default_rng(0)
    centres, radii = rng.uniform(30, 400, (25, 2)), rng.uniform(8, 30, 25)
    found = labels_beside(centres, radii, ["word another"] * 25, 440, 440)
    assert 3 < len(found) < 25
    for i, label in found.items():
        assert 0 < label.y < 440
        others = [other for j, other in found.items() if j != i]
        assert all(abs(label.y - other.y) >= SIZE or abs(label.x - other.x) > 12 * 6 for other in others)
        assert (np.hypot(*(centres - (label.x, label.y - SIZE / 3)).T) > radii).all()


def test_columns_of_a_table_give_titles_and_dates(tmp_path):
    rows = [f'"ship sea sail harbour {i}",Voyage {i},{1900 + i}' for i in range(30)]
    rows += [f'"tax bank loan credit {i}",Ledger {i},{1950 + i}' for i in range(30)]
    table, model, page = tmp_path / "a.csv", tmp_path / "a.odeco", tmp_path / "a.html"
    table.write_text("\n".join(["text,title,year", *rows]))
    assert (
        call("fit", "single-topic", table, "-k", "2", "-c", "text", "--min-df", "2", "--out", model, "-q").returncode
        == 0
    )
    assert call("report", model, table, "--out", page, "-q").returncode == 0
    text = page.read_text()
    assert "1900 to 1979" in text
    assert "Voyage " in text
    assert "Ledger " in text
    assert call("report", model, table, "--title", "year", "--out", page, "-q").returncode == 0
    assert "Voyage " not in page.read_text()
    done = call("report", model, table, "--date", "title", "--out", page)
    assert done.returncode == 1
    assert "dates must be years or dates" in done.stderr
    assert call("report", model, "--title", "title", "--out", page).returncode == 2
    (tmp_path / "a.txt").write_text("ship sea\ntax bank\n")
    assert (
        call("report", model, tmp_path / "a.txt", "--format", "text", "--title", "title", "--out", page).returncode == 1
    )
