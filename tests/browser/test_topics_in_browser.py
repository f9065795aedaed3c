"""The report of topics as a person uses it: click, slide, filter, keyboard; hostile words do nothing."""

import csv

import numpy as np
import pytest

from odeco import plots
from odeco.plots.topics import top_words, word_frequencies
from odeco.report import write_report
from tests.fitted_models import fitted_model, made_up_intervals
from tests.unit.report.test_escaping import HOSTILE, hostile_inputs


def shown_words(page):
    return page.locator("article.topic.chosen .words tbody th").all_inner_texts()


def chosen_topic(page):
    return page.locator("article.topic.chosen").get_attribute("data-topic")


def test_the_first_topic_is_open_and_a_click_opens_another(visit):
    visited = visit("lda")
    page = visited.page
    assert page.locator("article.topic:visible").count() == 1
    assert chosen_topic(page) == "0"
    page.locator(".map .node[data-topic='2']").click()
    assert chosen_topic(page) == "2"
    assert page.locator(".map .node.chosen").get_attribute("data-topic") == "2"
    assert page.locator(".topic-list tr.chosen").get_attribute("data-topic") == "2"
    assert page.url.endswith("#topic-2")
    page.locator(".topic-list tr[data-topic='1'] .summary").click()
    assert chosen_topic(page) == "1"
    assert "Topic 1" in page.locator("article.topic:visible h3").inner_text()
    assert visited.clean(), (visited.messages, visited.requests)


def test_a_link_opens_its_topic(visit, report_of):
    page = visit("lda").page
    page.goto(report_of("lda").as_uri() + "#topic-2")
    page.reload()
    assert chosen_topic(page) == "2"


@pytest.mark.parametrize("weight", [0, 0.35, 1])
def test_the_slider_ranks_words_as_python_does(visit, weight):
    model, inputs = fitted_model("lda")
    page = visit("lda").page
    page.locator("#relevance").fill(str(weight))
    shares = plots.topic_shares(model)
    scores = plots.relevance(model.components_, word_frequencies(model.components_, shares), weight)
    expected = [inputs["vocabulary"][w] for w in top_words(scores, 15)[0]]
    assert shown_words(page) == expected
    assert page.locator("#lambda").inner_text() == str(weight)


def test_the_filter_leaves_topics_with_the_word_and_dims_the_others(visit):
    page = visit("lda").page
    first = shown_words(page)[0]  # a word of topic 0 alone: the topics were drawn apart
    page.locator("#filter").fill(first)
    assert page.locator(".topic-list tbody tr:visible").count() < 3
    assert page.locator(".topic-list tr[data-topic='0']").is_visible()
    assert page.locator(".map .node.unmatched").count() > 0
    assert "of 3 topics" in page.locator("#found").inner_text()
    page.locator("#filter").fill("2")
    assert page.locator(".topic-list tbody tr:visible").count() == 1
    page.locator("#filter").fill("no such word")
    assert page.locator("#found").inner_text() == "0 of 3 topics"
    page.locator("#filter").fill("")
    assert page.locator(".topic-list tbody tr:visible").count() == 3


def test_the_keyboard_is_enough(visit):
    page = visit("lda").page
    page.locator(".map .node[data-topic='1']").focus()
    page.keyboard.press("Enter")
    assert chosen_topic(page) == "1"
    before = shown_words(page)
    page.locator("#relevance").focus()
    page.keyboard.press("Home")
    assert page.locator("#lambda").inner_text() == "0"
    assert shown_words(page) != before
    page.locator("#next").focus()
    page.keyboard.press("Enter")
    assert chosen_topic(page) == "2"
    page.locator("#next").click()
    assert chosen_topic(page) == "0"  # around the end


def test_without_a_script_every_topic_is_there(visit):
    visited = visit("lda", script=False)
    page = visited.page
    assert page.locator("article.topic:visible").count() == 3
    assert page.locator("#filter").is_hidden()
    assert page.locator("#relevance").is_hidden()
    assert page.locator("blockquote:visible").count() == 9
    page.locator(".topic-list a").nth(2).click()
    assert page.url.endswith("#topic-2")
    assert len(visited.requests) == 1


def test_printing_shows_every_topic(visit):
    page = visit("lda").page
    page.emulate_media(media="print")
    assert page.locator("article.topic:visible").count() == 3
    assert page.locator("#relevance").is_hidden()
    assert len(page.pdf()) > 10_000


def test_hostile_words_do_nothing(visit, tmp_path):
    model, inputs = hostile_inputs("lda")
    path = write_report(model, tmp_path / "hostile.html", **inputs, title=HOSTILE, fitted={"command": HOSTILE})
    visited = visit(path)
    page = visited.page
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.locator("#relevance").fill("0.2")
    page.locator(".map .node[data-topic='1']").click()
    page.locator("#filter").fill("</script>")
    assert page.locator("img").count() == 0
    assert all(word.startswith("</script></style><img src=x onerror") for word in shown_words(page))
    assert dialogs == []
    assert visited.clean(), (visited.messages, visited.requests)


def test_the_script_and_python_agree_on_the_words_first_shown(visit):
    with_script, without = visit("lda").page, visit("lda", script=False).page
    rows = "#topic-0 .words tbody tr"
    assert with_script.locator(rows).all_inner_texts() == without.locator(rows).all_inner_texts()


def test_intervals_follow_the_slider(visit, tmp_path):
    model, inputs = fitted_model("lda")
    path = write_report(model, tmp_path / "sure.html", intervals=made_up_intervals(model), **inputs)
    visited, without = visit(path, width=390), visit(path, width=390, script=False).page
    page, rows = visited.page, "#topic-0 .words tbody tr"
    assert page.locator(rows).all_inner_texts() == without.locator(rows).all_inner_texts()
    ends = "all => all.map((u) => [parseFloat(u.style.left), parseFloat(u.style.width)])"
    found, expected = (each.locator(f"{rows} u").evaluate_all(ends) for each in (page, without))
    assert np.shape(found) == (15, 2)
    np.testing.assert_allclose(found, expected, atol=0.11)  # written with one digit each
    page.locator("#relevance").fill("0")
    assert page.locator(f"{rows} u").count() == 15
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".topic-list tr[data-topic='2'] .summary").click()
    assert "did not replicate" in page.locator("article.topic:visible header").inner_text()
    assert visited.clean()


def test_single_topic_models_too(visit):
    visited = visit("single_topic")
    visited.page.locator(".map .node[data-topic='1']").click()
    assert chosen_topic(visited.page) == "1"
    assert visited.clean()
    assert np.isclose(float(visited.page.locator("#relevance").input_value()), 0.6)


def test_topics_are_renamed_and_downloaded(visit, tmp_path):
    visited = visit("lda")
    page = visited.page
    page.locator("article.topic.chosen .rename input").fill('My "=topic" <b>')
    assert page.locator("article.topic.chosen .heading").inner_text() == 'My "=topic" <b>'
    assert page.locator(".topic-list tr[data-topic='0'] .given-name").inner_text() == 'My "=topic" <b>'
    with page.expect_download() as download:
        page.locator("#download").click()
    path = tmp_path / "topics.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    assert [row["word"] for row in rows if row["topic"] == "0"] == shown_words(page)
    assert rows[0]["name"] == 'My "=topic" <b>'
    for _ in range(5):  # what is stored reaches a new process in its own time
        page.reload()
        if page.locator("article.topic.chosen .heading").inner_text() != "Topic 0":
            break
    assert page.locator("article.topic.chosen .heading").inner_text() == 'My "=topic" <b>'
    page.locator("article.topic.chosen .rename input").fill("")
    assert page.locator("article.topic.chosen .heading").inner_text() == "Topic 0"
    assert visited.messages == []


def test_words_stand_beside_circles_and_cover_none(visit):
    page = visit("lda").page
    labels = page.locator(".map .beside")
    assert labels.count() == 3
    first = page.locator(".map .node[data-topic='0'] .beside").text_content().split()
    assert first == shown_words(page)[:2]
    boxes = [labels.nth(i).bounding_box() for i in range(3)]
    circles = [page.locator(".map .node circle").nth(i).bounding_box() for i in range(3)]
    for label in boxes:
        for circle in circles:
            x, y = circle["x"] + circle["width"] / 2, circle["y"] + circle["height"] / 2
            near_x = min(max(x, label["x"]), label["x"] + label["width"])
            near_y = min(max(y, label["y"]), label["y"] + label["height"])
            assert (near_x - x) ** 2 + (near_y - y) ** 2 > (0.9 * circle["width"] / 2) ** 2
