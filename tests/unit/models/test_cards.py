"""The registry of cards: odeco's own, those of installed packages, those that were registered."""

import sys
import types
from dataclasses import replace
from importlib import metadata
from importlib.metadata import EntryPoint

import pytest

import odeco
from odeco.fitting.card import Card, Stored, path_of, resolve
from odeco.models import cards as registry
from odeco.models.cards import OWN, card_named, card_of, card_of_class, cards, register, unregister


class Toy:
    """Stands for an estimator."""


TOY = Card("toy", Toy, "table", "part", "A toy.")


@pytest.fixture
def registered():
    register(TOY)
    yield TOY
    if card_named("toy") is not None:
        unregister("toy")


@pytest.fixture
def installed(monkeypatch):
    """Entry points of packages that are not there."""
    module = types.ModuleType("a_package_with_cards")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def install(**given):
        points = []
        for name, value in given.items():
            setattr(module, name, value)
            points.append(EntryPoint(name, f"{module.__name__}:{name}", registry.GROUP))
        monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == registry.GROUP else [])
        registry._installed.cache_clear()

    yield install
    monkeypatch.undo()
    registry._installed.cache_clear()


def test_a_card_is_found_by_its_name_its_class_and_its_model(registered):
    assert cards() == (*OWN, TOY)
    assert card_named("toy") is card_of_class("Toy") is card_of(Toy()) is TOY


def test_subclasses_have_the_card_of_their_nearest_estimator(registered):
    class Derived(Toy):
        pass

    class DerivedICA(odeco.ICA):
        pass

    assert card_of(Derived()) is TOY
    assert card_of(DerivedICA()).name == "ica"
    assert card_of(object()) is None


def test_a_class_that_only_has_the_name_of_an_estimator_has_no_card():
    assert card_of(type("ICA", (), {})()) is None


def test_what_is_forgotten_is_not_known(registered):
    unregister("toy")
    assert cards() == OWN
    with pytest.raises(ValueError, match="no model 'toy' was registered"):
        unregister("toy")


def test_a_notebook_cell_may_run_twice(registered):
    again = replace(TOY, summary="Another toy.")
    register(again)
    assert cards() == (*OWN, again)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("toy", "a Card is expected, got 'toy'"),
        (replace(TOY, name="lda"), "there is a model 'lda' already"),
        (replace(TOY, estimator=type("ICA", (), {})), "ICA is the class of the model 'ica' already"),
        (replace(TOY, stored={"WordPairs": Stored(Toy)}), "another 'WordPairs' already"),
        (replace(TOY, stored={"Diagnostics": Stored(Toy)}), "another 'Diagnostics' already"),
    ],
)
def test_names_that_mean_something_else_are_refused(card, message):
    with pytest.raises(ValueError, match=message):
        register(card)
    assert cards() == OWN


def test_packages_bring_cards(installed):
    other = replace(TOY, name="other", estimator="package:Other")
    installed(one=TOY, several=[other])
    assert cards() == (*OWN, TOY, other)
    with pytest.raises(ValueError, match="there is a model 'toy' already"):
        register(TOY)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (None, "ValueError: a Card is expected, got None"),
        (replace(TOY, name="ica"), "ValueError: there is a model 'ica' already"),
    ],
)
def test_a_card_that_cannot_be_used_is_a_warning(installed, broken, why):
    installed(broken=broken, toy=TOY)
    with pytest.warns(UserWarning, match=f"the model 'broken' .* is left out.*{why}.*: mend or remove the package"):
        assert cards() == (*OWN, TOY)
    assert cards() == (*OWN, TOY)  # said once


def test_packages_are_found_where_they_are_installed(monkeypatch, tmp_path):
    """One with two entry points, the second to a module that is not there."""
    (tmp_path / "slicer_of_rows.py").write_text(
        "from odeco.fitting.card import Card\n"
        'CARD = Card("slices", "slicer_of_rows.model:Slices", "table", "slice", "Rows cut into slices.")\n'
    )
    folder = tmp_path / "slicer_of_rows-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: slicer-of-rows\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[odeco.models]\nslices = slicer_of_rows:CARD\ngone = slicer_of_rows.gone:CARD\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry._installed.cache_clear()
    try:
        with pytest.warns(UserWarning, match="'gone'.*is left out.*ModuleNotFoundError"):
            assert [card.name for card in cards()] == [*(card.name for card in OWN), "slices"]
    finally:
        monkeypatch.undo()
        sys.modules.pop("slicer_of_rows", None)
        registry._installed.cache_clear()
    assert cards() == OWN


def test_references_that_are_not_there():
    with pytest.raises(ImportError, match=r"a card names 'odeco.models.ica.estimator:PCA', and there is no 'PCA' in"):
        resolve("odeco.models.ica.estimator:PCA")


def test_references():
    assert resolve("odeco.models.ica.estimator:ICA") is resolve(odeco.ICA) is odeco.ICA
    assert path_of(odeco.ICA) == path_of("odeco.models.ica.estimator:ICA")
