"""Every estimator has a report: complete, in one file, whatever was given to it."""

import copy
import re
from collections import Counter
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pandas as pd
import pytest

import odeco
from odeco.report import findings, render_report, write_report
from odeco.report.fitted import facts, python_call
from tests.fitted_models import FITTED, fitted_model, made_up_intervals


class Page(HTMLParser):
    """What a browser would fetch or run, and the elements of a page."""

    fetching = frozenset(
        {"src", "srcset", "href", "xlink:href", "action", "formaction", "data", "poster", "background"}
    )

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.resources: list[str] = []
        self.handlers: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self._inside = tag
        self.resources += [v or "" for k, v in attrs if k in self.fetching and not (v or "").startswith("#")]
        self.resources += [v or "" for k, v in attrs if k == "style" and "url(" in (v or "")]
        self.handlers += [k for k, _ in attrs if k.startswith("on")]

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        self.texts.setdefault(self._inside, []).append(data)

    def text(self, tag: str) -> str:
        return "".join(self.texts.get(tag, []))

    def facts(self) -> dict[str, str]:
        return dict(zip(self.texts["dt"], self.texts["dd"], strict=True))


def assert_self_contained(page: Page) -> None:
    assert page.resources == []
    assert page.handlers == []
    assert not re.search(r"url\(|@import|https?:", page.text("style"))
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(|eval\(|innerHTML", page.text("script"))
    assert page.tags["link"] == page.tags["img"] == page.tags["iframe"] == page.tags["base"] == 0


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("given", ["nothing", "data"])
def test_every_estimator_has_a_report(name, given, tmp_path):
    model, inputs = fitted_model(name)
    path = write_report(model, tmp_path / "report.html", **(inputs if given == "data" else {}))
    html = path.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert_self_contained(Page(html))
    for part in ('id="fit"', 'id="repeat"', "Spectrum", "Convergence", type(model).__name__):
        assert part in html
    for finding in findings(model):
        assert finding.name in html
    assert len(html) < 200_000
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_topics_keep_the_numbers_of_the_model():
    model, inputs = fitted_model("lda")
    html = render_report(model, **inputs)
    for i, topic in enumerate(model.components_):
        article = html.split(f'id="topic-{i}"')[1].split("</article>")[0]
        words = re.findall(r'<th scope="row">(\w+)</th>', article)
        assert inputs["vocabulary"][int(topic.argmax())] in words[:6]
        assert f"Topic {i}" in article


def test_representative_documents_are_those_of_their_topic():
    model, inputs = fitted_model("lda")
    html = render_report(model, **inputs)
    proportions = model.transform(inputs["data"])
    shown = re.findall(r"document ([\d,]+) · (\S+) of it is topic (\d)", html)
    assert len(shown) == 9
    for document, share, topic in shown:
        expected = proportions[int(document.replace(",", "")), int(topic)]
        assert expected == pytest.approx(float(share.strip("%<>")) / 100, abs=0.006)  # rounded to a percent
    assert html.count("<mark>") > 9


def test_texts_may_come_one_by_one():
    model, inputs = fitted_model("lda")
    listed = render_report(model, **inputs)
    assert render_report(model, **{**inputs, "documents": lambda: iter(inputs["documents"])}) == listed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": ["one"]}, "documents must hold a text for each of the 300 rows of data, got 1"),
        ({"documents": lambda: iter(["one"])}, "documents ended before number"),
        ({"data": None}, "give data as well"),
        ({"vocabulary": ["one"]}, "vocabulary must hold 20 names.*got 1"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_and_nothing_is_written(change, message, tmp_path):
    model, inputs = fitted_model("lda")
    with pytest.raises(ValueError, match=message):
        write_report(model, tmp_path / "report.html", **{**inputs, **change})
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted|fitted estimator"):
        write_report(odeco.ICA(), tmp_path / "report.html")
    with pytest.raises(ValueError, match="fitted estimator of odeco"):
        write_report("model", tmp_path / "report.html")


def test_an_existing_report_is_replaced_whole(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    model, _ = fitted_model("ica")
    write_report(model, path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(FileNotFoundError):
        write_report(model, tmp_path / "nowhere" / "report.html")


def test_the_same_model_gives_the_same_report():
    model, inputs = fitted_model("lda")
    assert render_report(model, **inputs) == render_report(model, **inputs)


@pytest.mark.parametrize("name", FITTED)
def test_a_model_read_back_from_its_file_has_the_same_report(name, tmp_path):
    model, inputs = fitted_model(name)
    odeco.save(model, tmp_path / "model.odeco")
    assert render_report(odeco.load(tmp_path / "model.odeco"), **inputs) == render_report(model, **inputs)


def test_many_topics_stay_small():
    """50 topics over 10,000 words, as large as reports get in practice."""
    rng = np.random.default_rng(0)
    model, _ = fitted_model("lda")
    large = copy.copy(model)
    large.components_ = rng.dirichlet(np.full(10_000, 0.02), size=50)
    large.alpha_ = np.sort(rng.dirichlet(np.ones(50)))[::-1]
    large.n_features_in_ = 10_000
    html = render_report(large, vocabulary=[f"longerword{i}" for i in range(10_000)])
    assert len(html.encode()) < 500_000


def test_how_it_was_fitted_can_be_run_again():
    model, inputs = fitted_model("gaussian_mixture")
    code = python_call(model).replace("model.fit(X)", "fitted = model.fit(X)")
    again: dict = {"X": inputs["data"]}
    exec(code, again)
    assert np.array_equal(again["fitted"].means_, model.means_)
    html = render_report(
        model, fitted={"command": "odeco fit gaussian-mixture x.csv -k 3", "rows": 400, "seconds": 1.5}
    )
    assert "odeco fit gaussian-mixture x.csv -k 3" in html
    assert "random_state=0" in html
    assert "<dt>Seconds</dt><dd>1.5</dd>" in html


def test_a_fit_without_a_seed_says_so():
    model, inputs = fitted_model("gaussian_mixture")
    unseeded = odeco.GaussianMixture(3).fit(inputs["data"])
    assert "No seed was given" in render_report(unseeded)
    assert "No seed was given" not in render_report(model)


def test_advice_of_a_doubtful_fit_is_on_the_page():
    rng = np.random.default_rng(0)
    with pytest.warns(odeco.MomentWarning):
        model = odeco.ICA(2, random_state=0).fit(rng.standard_normal((500, 2)))
    page = Page(render_report(model))
    assert "cannot be separated" in page.text("li")


@pytest.mark.parametrize("name", FITTED)
def test_everything_is_there_without_a_script(name):
    """The script hides what is not chosen; the page itself has it all, and tables have names for their columns."""
    model, inputs = fitted_model(name)
    page = Page(render_report(model, **inputs))
    assert page.tags["noscript"] == 0  # nothing is said in two ways
    assert page.tags["h1"] == page.tags["main"] == page.tags["nav"] == 1
    assert page.tags["table"] >= 2
    if name == "lda":
        assert page.tags["article"] == 3
        assert page.tags["blockquote"] == 9


def test_colours_can_be_read():
    """WCAG's contrast of 4.5 for text on its ground, in light and in dark; numbers of components on their colours."""
    css = (resources.files("odeco.report") / "templates" / "report.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", css, re.S)[:2]
    for block in (light, dark):
        found = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block))
        for ink in ("ink", "soft", "accent", "good", "doubt", "bad"):
            for ground in ("paper", "card"):
                assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)
        for level in ("good", "doubt", "bad"):
            assert contrast(found[level], found[f"{level}-wash"]) >= 4.5
        assert contrast(found["ink"], found["mark"]) >= 4.5
        for i in range(10):
            assert contrast(found[f"c{i}"], found["on"]) >= 4.5, i


def contrast(first: str, second: str) -> float:
    """Contrast of two colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_options_of_the_command_are_shown_once():
    """What the model itself knows stands among its options; what only the command knew stands with the facts."""
    model, _ = fitted_model("gaussian_mixture")
    shown = dict(facts(model, {"options": {"n_components": 3, "min_df": 10}, "seconds": 1.5, "odeco": "0.0.1"}))
    assert shown["min_df"] == "10"
    assert "n_components" not in shown
    assert shown["odeco"] == "0.0.1"


def test_the_page_may_go_to_the_standard_output(capfdbinary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, _ = fitted_model("ica")
    write_report(model, "-")
    assert capfdbinary.readouterr().out == render_report(model).encode()
    assert list(tmp_path.iterdir()) == []


def test_data_may_be_frames_whole_or_in_batches():
    rng = np.random.default_rng(0)
    hidden = rng.integers(2, size=300)
    frame = pd.DataFrame(
        {
            "colour": np.where(rng.random(300) < np.where(hidden, 0.8, 0.2), "red", "blue"),
            "visits": rng.poisson(np.where(hidden, 20, 5)),
            "size": rng.normal(3.0 * hidden),
            "weight": rng.normal(-2.0 * hidden),
        }
    )
    model = odeco.ProductMixture(2, random_state=0).fit(frame)
    whole = render_report(model, data=frame)
    assert "size" in Page(whole).text("h3")
    assert render_report(model, data=[frame]) == whole
    batches = odeco.ProductMixture(2, random_state=0).fit(lambda: iter([frame[:150], frame[150:]]))
    page = Page(render_report(batches, data=lambda: iter([frame[:150], frame[150:]])))
    assert page.facts()["samples looked at"] == "150"


def test_counts_may_be_a_frame_and_documents_empty():
    model, inputs = fitted_model("lda")
    frame = pd.DataFrame(inputs["data"].toarray(), columns=inputs["vocabulary"])
    named = odeco.LatentDirichletAllocation(3, random_state=0).fit(frame)
    assert inputs["vocabulary"][0] in render_report(named, data=frame)  # names are the model's own
    empty = Page(render_report(model, data=np.zeros((4, 20)))).facts()
    assert (empty["documents"], empty["words read"]) == ("4", "0")


@pytest.mark.parametrize("k", [1, 12])
def test_one_component_and_more_than_there_are_colours(k):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 15)) + 8 * np.eye(15)[rng.integers(k, size=600)]
    model = odeco.GaussianMixture(k, random_state=0).fit(rows)
    html = render_report(model, data=rows)
    assert_self_contained(Page(html))
    assert f'<span class="chip c{(k - 1) % 10}">{k - 1}</span>' in html


def test_many_components_make_a_table_and_few_make_cards():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 12)) + 8 * np.eye(12)[rng.integers(10, size=600)]
    many = Page(render_report(odeco.GaussianMixture(10, random_state=0).fit(rows)))
    few = Page(render_report(odeco.GaussianMixture(3, random_state=0).fit(rows)))
    assert many.tags["article"] == 0
    assert few.tags["article"] == 12
    assert many.text("th").count("column ") == 12


# Intervals, where people look.

WHISKERS = {"lda": 45, "single_topic": 45, "gaussian_mixture": 3 + 12, "multiview": 2 + 18, "dawid_skene": 3}
WHISKERS |= {"categorical_hmm": 8, "gaussian_hmm": 4, "poisson_hmm": 2, "ica": 0, "product_mixture": 2 + 10}


@pytest.mark.parametrize("name", FITTED)
def test_intervals_are_on_bars_and_in_cells_and_what_is_lost_is_marked(name):
    model, given = fitted_model(name)
    plain, text = render_report(model, **given), render_report(model, intervals=made_up_intervals(model), **given)
    family = text.split('id="certainty"')[0]
    assert_self_contained(Page(text))
    assert family.count("<u style=") == WHISKERS[name]
    assert "did not replicate" in family
    assert ' lost">' in family  # its chip
    assert 'class="sure"' in family or 'number sure"' in family
    assert "<u " not in plain.split("</style>")[1].split("<script")[0]
    assert "did not replicate" not in plain
    assert len(text) < 1.3 * len(plain)


def test_cells_of_transitions_have_both_ends():
    model, given = fitted_model("gaussian_hmm")
    text = render_report(model, intervals=made_up_intervals(model), **given)
    low, high = 0.95 * model.transmat_[0, 1], 1.05 * model.transmat_[0, 1]
    assert f'<small class="sure">{100 * low:.1f}–{100 * high:.1f}%</small>' in text


def test_classes_and_confusions_have_tables():
    model, given = fitted_model("product_mixture")
    text = render_report(model, intervals=made_up_intervals(model), **given)
    assert "Classes and their answers" in text
    assert '<th scope="col">standard error</th>' in text
    crowd, given = fitted_model("dawid_skene")
    text = render_report(crowd, intervals=made_up_intervals(crowd), **given)
    assert '<th scope="col">true class</th>' in text


def test_intervals_of_another_model_are_refused():
    model, given = fitted_model("gaussian_mixture")
    with pytest.raises(ValueError, match="intervals of another model: weights_ differs"):
        render_report(model, intervals=made_up_intervals(fitted_model("multiview")[0]), **given)
