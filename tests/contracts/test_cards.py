"""Every model has one card, and nobody else keeps a list of models."""

import ast
import inspect
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

import odeco
from odeco.cli.fit import app as fit_app
from odeco.cli.inputs import READERS
from odeco.fitting.card import EVERY, ROWS, path_of, resolve
from odeco.models.cards import OWN, card_of
from tests.fitted_models import FITTED, fitted_model
from tests.saved_models import CASES, GOLDEN

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "odeco"
CLASSES = {card.class_name for card in OWN}
COMMANDS = {card.name for card in OWN}

# Modules outside of models/ that may name several estimators.
ALLOWED = {
    "__init__.py": "type checkers and readers of __all__ see no cards; a test below compares them",
}


def card_id(card):
    return card.name


every_card = pytest.mark.parametrize("card", OWN, ids=card_id)


@cache
def learned(name):
    """The attributes of fitted models of a class: after `fit` and after `partial_fit`."""
    case = next(case for case in GOLDEN if case.name == name)
    models = [case.fit(), case.partial_fit(case.make(), slice(0, 2))]
    return [set(vars(model)) - set(model.get_params(deep=False)) for model in models]


def test_every_public_estimator_has_a_card():
    public = [name for name in odeco.__all__ if hasattr(getattr(odeco, name), "get_params")]
    assert public == [card.class_name for card in OWN]


def test_type_checkers_are_told_the_same():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {f"{node.module}:{name.name}" for node in block.body for name in node.names}
    assert {path for path in told if path.startswith("odeco.models.")} == {card.estimator for card in OWN}


def test_every_folder_of_a_model_has_a_card_that_is_known():
    folders = {path.parent for path in PACKAGE.glob("models/*/estimator.py")} | {PACKAGE / "models" / "hmm"}
    assert {path.parent for path in PACKAGE.glob("models/*/card.py")} == folders
    known = {card.estimator.split(".")[2] for card in OWN}
    assert known == {folder.name for folder in folders} - {"topics"}  # what both topic models share


@every_card
def test_a_card_names_the_class_where_it_is_defined(card):
    assert path_of(card.load()) == card.estimator
    assert card_of(card.load()()) is card


@pytest.mark.usefixtures("short_search")
@every_card
def test_learned_attributes_are_those_of_fitted_models(card):
    declared = set(card.attributes)
    required = {name for name, shape in card.attributes.items() if not str(shape).startswith("maybe ")}
    for found in learned(card.class_name):
        assert required <= found <= declared
    # Names of columns, set_output and a number that was chosen depend on the caller, not on the model.
    assert declared - set.union(*learned(card.class_name)) <= {
        "feature_names_in_",
        "_sklearn_output_config",
        "n_components_",
    }
    assert set(EVERY) <= declared


@every_card
def test_options_are_arguments_of_the_estimator(card):
    arguments = inspect.signature(card.load()).parameters
    assert {card.count, "random_state", *(option.name for option in card.options)} <= set(arguments)
    for option in card.options:
        if option.choices:
            default = arguments[option.name].default
            assert ("none" if default is None else default) in option.choices


@every_card
def test_examples_are_commands(card):
    assert card.examples
    for example in card.examples:
        command, model, *arguments = shlex.split(example.rpartition("odeco ")[2])
        assert (command, model) == ("fit", card.name)
        assert parsed(card.name, arguments)["out"].suffix == ".odeco"


def parsed(name, arguments):
    """What the subcommand of a model makes of its arguments; nothing is run."""
    group = fit_app.info.cls(name="fit")
    return group.get_command(None, name).make_context(name, arguments).params


@every_card
def test_what_a_card_refers_to_is_there(card):
    references = [card.parts, card.page, *(stored.rule for stored in card.stored.values()), card.check]
    assert all(callable(resolve(reference)) for reference in references if reference is not None)
    assert set(card.plots) <= set(odeco.plots.__all__)


def test_every_kind_of_rows_has_a_reader():
    assert set(ROWS) == set(READERS)


def test_what_the_tests_fit_are_all_models():
    assert {type(fitted_model(name)[0]).__name__ for name in FITTED} == CLASSES
    assert {case.name.partition(" ")[0] for case in CASES} == CLASSES
    assert [case.name for case in GOLDEN if case.name not in CLASSES] == []


def test_the_reference_documents_every_model():
    page = (ROOT / "docs" / "api" / "estimators.md").read_text()
    assert set(re.findall(r"^::: (\S+)$", page, re.MULTILINE)) == {card.estimator.replace(":", ".") for card in OWN}


def names_in(tree):
    """What the code of a module names: strings of their own, names, attributes, imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            yield node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def lists_of_models(text):
    """What a module names of the models, where that is more than one of them."""
    found = set(names_in(ast.parse(text)))
    return [names for names in (found & CLASSES, found & COMMANDS) if len(names) > 1]


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if "models" not in path.relative_to(PACKAGE).parts[:1]],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_nobody_else_keeps_a_list_of_models(path):
    place = str(path.relative_to(PACKAGE))
    assert bool(lists_of_models(path.read_text(encoding="utf-8"))) == (place in ALLOWED)


@pytest.mark.parametrize(
    "text",
    [
        'KINDS = ("ICA", "DawidSkene")',
        'if kind == "ICA":\n    pass\nelif kind == "DawidSkene":\n    pass',
        "from odeco import ICA, DawidSkene",
        "isinstance(model, (odeco.ICA, odeco.DawidSkene))",
        'PAGES = {"lda": 1, "hmm": 2}',
    ],
)
def test_a_list_of_models_is_noticed(text):
    assert lists_of_models(text)


def test_one_model_is_no_list_and_neither_are_words():
    assert not lists_of_models('"""ICA and DawidSkene, lda and hmm."""\nKIND = "ICA"\nNAME = "lda"')
