"""A loaded model is the saved one: parameters, answers, draws, diagnostics, and what it learns later."""

import json
from pathlib import Path

import numpy as np
import pytest

import odeco
from odeco import archive
from odeco.persistence import load_with_metadata
from tests.saved_models import CASES, GOLDEN, SavedCase, case_id, differences

FILES = Path(__file__).parents[2] / "data" / "models"

pytestmark = pytest.mark.usefixtures("short_search")
each_case = pytest.mark.parametrize("case", CASES, ids=case_id)
each_stream = pytest.mark.parametrize("case", [case for case in CASES if case.streams], ids=case_id)


def through_file(model, folder: Path):
    odeco.save(model, folder / "model.odeco")
    return odeco.load(folder / "model.odeco")


def same(first, second) -> None:
    assert list(differences(first, second)) == []


@each_case
def test_a_fitted_model_comes_back(case: SavedCase, tmp_path):
    model = case.fit()
    loaded = through_file(model, tmp_path)
    same(vars(loaded), vars(model))
    same(loaded.get_params(), model.get_params())
    same(case.ask(loaded), case.ask(model))


@each_stream
@pytest.mark.parametrize("seen", [1, 2])
def test_partial_fit_goes_on(case: SavedCase, seen: int, tmp_path):
    model = case.partial_fit(case.make(), slice(0, seen))
    loaded = through_file(model, tmp_path)
    same(vars(loaded), vars(model))
    case.partial_fit(model, slice(seen, 3))
    case.partial_fit(loaded, slice(seen, 3))
    same(vars(loaded), vars(model))
    same(case.ask(loaded), case.ask(model))


@each_case
def test_an_unfitted_model_can_be_fitted_after_loading(case: SavedCase, tmp_path):
    model = case.make()
    loaded = through_file(model, tmp_path)
    same(vars(loaded), vars(model))
    same(vars(case.fit(model=loaded)), vars(case.fit(model=model)))


def test_a_fit_that_moments_could_not_start_comes_back(tmp_path):
    views = [np.ones((20, 2))] * 3
    with pytest.warns(odeco.MomentWarning):
        model = odeco.MultiViewMixture(2, random_state=0).fit(views)
    same(vars(through_file(model, tmp_path)), vars(model))


def test_what_is_shared_is_shared_after_loading(tmp_path):
    case = CASES[0]
    loaded = through_file(case.partial_fit(case.make(), slice(0, 3)), tmp_path)
    sums = loaded._stream.sums
    assert sums.pairs.basis is sums.triples.basis


def _two_heaps(rng):
    return rng.normal(size=(6000, 3)) + 9 * rng.integers(0, 2, (6000, 1))


def _doubled_symbols(rng):
    return np.repeat(rng.integers(0, 3, 26_000), 2)[:, None]


def _two_levels(rng):
    return rng.normal(size=(52_000, 1)) + 9 * np.repeat(rng.integers(0, 2, 5200), 10)[:, None]


@pytest.mark.parametrize(
    ("make", "chunk"),
    [
        (lambda: odeco.GaussianMixture(2, random_state=0), _two_heaps),
        (lambda: odeco.CategoricalHMM(2, n_features=3, random_state=0, max_iter=5), _doubled_symbols),
        (lambda: odeco.GaussianHMM(2, random_state=0, max_iter=5), _two_levels),
    ],
    ids=["GaussianMixture", "CategoricalHMM", "GaussianHMM"],
)
def test_sums_of_long_streams_go_on(make, chunk, tmp_path):
    """Streams that hold so many first rows that small data never become sums."""
    model = make()
    case = SavedCase("long", make, lambda: [chunk(np.random.default_rng(i)) for i in range(2)], ())
    case.partial_fit(model, slice(0, 1))
    loaded = through_file(model, tmp_path)
    same(vars(loaded), vars(model))
    case.partial_fit(model, slice(1, 2))
    case.partial_fit(loaded, slice(1, 2))
    same(vars(loaded), vars(model))


@pytest.mark.parametrize("kind", ["fit", "partial_fit"])
@pytest.mark.parametrize("version", ["v2"])
@pytest.mark.parametrize("case", GOLDEN, ids=case_id)
def test_files_of_every_version_can_be_read(case: SavedCase, version: str, kind: str):
    """Files that were written once and for all: whatever changes, they load, answer, and go on learning."""
    saved = load_with_metadata(FILES / version / f"{case.name}.{kind}.odeco")
    assert type(saved.model).__name__ == case.name
    answers = case.ask(saved.model)
    for name, expected in saved.metadata["answers"].items():
        # Rounding of other processors and versions of BLAS: each answer is a few hundred operations on doubles.
        np.testing.assert_allclose(np.asarray(answers[name]), np.asarray(expected), rtol=1e-6, atol=1e-9)
    if kind == "partial_fit":
        case.partial_fit(saved.model, slice(2, 3))


def test_files_of_development_versions_end_in_words(tmp_path):
    odeco.save(odeco.ICA(2), tmp_path / "now")
    _, document, arrays = archive.read(tmp_path / "now", "model", 2)
    archive.write(tmp_path / "old", "model", 1, document, arrays)
    with pytest.raises(odeco.ModelFileError, match="format 1 of a development version: fit it again"):
        odeco.load(tmp_path / "old")


def test_arrays_of_files_lie_row_by_row(tmp_path):
    """As compiled loops want them, whoever wrote them column by column."""
    model = odeco.CategoricalHMM(2, random_state=0).fit(np.arange(300) % 7 % 3)
    model.emissionprob_ = np.asfortranarray(model.emissionprob_)
    loaded = through_file(model, tmp_path)
    assert loaded.emissionprob_.flags.c_contiguous
    np.testing.assert_array_equal(loaded.emissionprob_, model.emissionprob_)


def test_metadata_travels(tmp_path):
    metadata = {
        "vocabulary": ["straße", "😀", "a\x00b", "\ud800"],
        "fitted": {"seconds": 0.1, "rows": None},
        "n": [1, True],
    }
    odeco.save(odeco.ICA(2), tmp_path / "a", metadata=metadata)
    found = load_with_metadata(tmp_path / "a")
    assert found.metadata == metadata
    assert found.odeco == odeco.__version__
    assert found.model.n_components == 2


@pytest.mark.parametrize("metadata", [{1: 2}, {"a": np.arange(2)}, {"a": float("nan")}, [1], {"a": {3}}])
def test_metadata_that_json_cannot_hold(metadata, tmp_path):
    with pytest.raises(ValueError, match="metadata"):
        odeco.save(odeco.ICA(2), tmp_path / "a", metadata=metadata)
    assert not list(tmp_path.iterdir())


def test_only_our_own_estimators(tmp_path):
    class Mine(odeco.ICA):
        pass

    for model in (Mine(), object(), "ICA", odeco.ICA):
        with pytest.raises(ValueError, match="model must be an estimator of odeco"):
            odeco.save(model, tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_attributes_of_the_users_own_are_refused(tmp_path):
    model = odeco.ICA(2)
    model.note = "mine"
    with pytest.raises(ValueError, match="no attribute 'note'"):
        odeco.save(model, tmp_path / "a")


def test_values_that_cannot_be_kept_are_named(tmp_path):
    with pytest.raises(ValueError, match="random_state is a builtins.object"):
        odeco.save(odeco.ICA(2, random_state=object()), tmp_path / "a")


def test_set_output_stays(tmp_path):
    model = CASES[1].fit().set_output(transform="pandas")
    loaded = through_file(model, tmp_path)
    assert loaded.transform(CASES[1].chunks()[0]).equals(model.transform(CASES[1].chunks()[0]))


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = CASES[0].fit()
    odeco.save(model, tmp_path / "a")
    odeco.save(model, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


_NO_GENERATOR = {"is": "dict", "items": [["bit_generator", "bytes"]]}


class TestForged:
    """Files whose checksums are right and whose contents no `save` has written."""

    @pytest.fixture
    def forge(self, tmp_path):
        case = CASES[0]
        odeco.save(case.fit(), tmp_path / "good")
        _, document, arrays = archive.read(tmp_path / "good", "model", 2)

        def make(change):
            copy = json.loads(json.dumps(document))
            change(copy, arrays)
            archive.write(tmp_path / "bad", "model", 2, copy, arrays)
            return tmp_path / "bad"

        return make

    @pytest.mark.parametrize(
        "change",
        [
            lambda d, a: d.update(estimator="Popen"),
            lambda d, a: d.update(estimator=["ICA"]),
            lambda d, a: d["parameters"].update(shell=True),
            lambda d, a: d["learned"].update(predict=1),
            lambda d, a: d["learned"].update(__class__="x"),
            lambda d, a: d["learned"].update(weights_=[0.5, 0.5]),
            lambda d, a: d["learned"].update(n_features_in_=10**9),
            lambda d, a: d["learned"].update(n_iter_=-1),
            lambda d, a: d["learned"].update(diagnostics_={"is": "object", "class": "os.system", "state": {}}),
            lambda d, a: d["learned"].update(diagnostics_={"is": "object", "class": "Trace", "state": {}}),
            lambda d, a: d["learned"].update(diagnostics_={"is": "enum", "class": "Trace", "member": "x"}),
            lambda d, a: d["learned"].update(diagnostics_={"is": "enum", "class": "StopReason", "member": "__doc__"}),
            lambda d, a: d["learned"].update(diagnostics_={"is": "import"}),
            lambda d, a: d["learned"].update(weights_={"is": "same", "as": 10**6}),
            lambda d, a: d["learned"].update(weights_={"is": "array", "name": "no such"}),
            lambda d, a: d["learned"].update(weights_={"is": "objects", "shape": [10**12], "items": []}),
            lambda d, a: d["parameters"].update(random_state={"is": "generator", "state": _NO_GENERATOR}),
            lambda d, a: d.pop("learned"),
            lambda d, a: d.update(metadata=[1]),
            lambda d, a: a.update({k: v.astype("U") for k, v in list(a.items())}),
            lambda d, a: a.update({k: v.astype(np.int8) for k, v in list(a.items())}),
            lambda d, a: a.update({k: np.zeros((7, 7)) for k in list(a)}),
        ],
    )  # fmt: skip
    def test_is_refused(self, forge, change):
        with pytest.raises(odeco.ModelFileError):
            odeco.load(forge(change))

    @pytest.mark.parametrize("case", [CASES[0], CASES[1]], ids=case_id)
    def test_sums_of_other_shapes_are_refused(self, case, tmp_path):
        """Compiled loops go on with the sums of `partial_fit`: each of their arrays in turn has a column too few."""
        odeco.save(case.partial_fit(case.make(), slice(0, 2)), tmp_path / "good")
        _, document, arrays = archive.read(tmp_path / "good", "model", 2)
        stream = json.dumps(document["learned"]["_stream"])
        names = [name for name in arrays if f'"name": "{name}"' in stream and arrays[name].ndim > 1]
        assert len(names) > 5
        for name in names:
            changed = {**arrays, name: np.ascontiguousarray(arrays[name][..., :-1])}
            archive.write(tmp_path / "bad", "model", 2, document, changed)
            with pytest.raises(odeco.ModelFileError):
                odeco.load(tmp_path / "bad")

    def test_nesting_without_end(self, forge):
        def nest(document, arrays):
            node = []
            for _ in range(900):
                node = [node]
            document["learned"]["n_iter_"] = node

        with pytest.raises(odeco.ModelFileError):
            odeco.load(forge(nest))

    def test_unchanged_it_loads(self, forge):
        odeco.load(forge(lambda d, a: None))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        odeco.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        odeco.load(tmp_path)
    with pytest.raises(IsADirectoryError):
        odeco.save(odeco.ICA(), tmp_path)
    with pytest.raises(FileNotFoundError, match="missing"):
        odeco.save(odeco.ICA(), tmp_path / "missing" / "a")


def test_classes_of_the_registry_exist():
    from odeco.persistence.classes import class_of, classes

    for name in classes():
        assert isinstance(class_of(name), type)
