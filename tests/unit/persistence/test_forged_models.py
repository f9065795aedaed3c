"""Model files with right checksums that no `save` has written: what compiled loops would trust is refused at load."""

import json
import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum

import numpy as np
import pytest

import odeco
from odeco import archive
from odeco.persistence.classes import class_of, classes
from tests.saved_models import CASES

BY_NAME = {case.name: case for case in CASES}

pytestmark = pytest.mark.usefixtures("short_search")


def written(model, folder):
    """The contents of a model file: document and arrays, to be changed."""
    odeco.save(model, folder / "good")
    return archive.read(folder / "good", "model", 2)[1:]


def refused(document, arrays, folder, match):
    archive.write(folder / "bad", "model", 2, document, arrays)
    with pytest.raises(odeco.ModelFileError, match=match):
        odeco.load(folder / "bad")


def replaced(text, old, new):
    """A document with one piece of its text replaced."""
    before = json.dumps(text)
    assert before.count(old) == 1
    return json.loads(before.replace(old, new))


def test_every_class_of_a_file_is_declared():
    for name, stored in classes().items():
        kind = class_of(name)
        if issubclass(kind, Enum):
            assert not stored.attributes
        elif is_dataclass(kind):
            assert set(stored.attributes) == {field.name for field in fields(kind)}
        else:
            assert stored.attributes


@pytest.mark.parametrize("make", [np.random.RandomState, lambda: np.random.Generator(np.random.MT19937())])
@pytest.mark.parametrize("place", [-1, 625, 10**9])
def test_place_of_a_twister(make, place, tmp_path):
    """numpy reads its next number there."""
    generator = make()
    state = getattr(generator, "bit_generator", getattr(generator, "_bit_generator", None)).state["state"]
    document, arrays = written(odeco.ICA(2, random_state=generator), tmp_path)
    forged = replaced(document, json.dumps(["pos", state["pos"]]), json.dumps(["pos", place]))
    refused(forged, arrays, tmp_path, "MT19937")


def test_a_twister_of_zeros(tmp_path):
    """All that comes from it is zero, and draws that reject zeros never end."""
    document, arrays = written(odeco.ICA(2, random_state=np.random.RandomState()), tmp_path)
    refused(document, {name: np.zeros_like(array) for name, array in arrays.items()}, tmp_path, "MT19937")


@pytest.mark.parametrize(
    ("bits", "old", "new"),
    [
        (np.random.Philox, ["buffer_pos", 4], ["buffer_pos", 4000]),
        (np.random.PCG64, ["inc", None], ["inc", 0]),
        (np.random.PCG64DXSM, ["inc", None], ["inc", 0]),
    ],
)
def test_states_of_other_bit_generators(bits, old, new, tmp_path):
    generator = np.random.Generator(bits(0))
    if old[1] is None:
        old = [old[0], generator.bit_generator.state["state"][old[0]]]
    document, arrays = written(odeco.ICA(2, random_state=generator), tmp_path)
    refused(replaced(document, json.dumps(old), json.dumps(new)), arrays, tmp_path, bits.__name__)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.SFC64, np.random.Philox, np.random.MT19937])
@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.Generator])
def test_sound_generators_go_on(bits, kind, tmp_path):
    odeco.save(odeco.ICA(2, random_state=kind(bits(3))), tmp_path / "a")
    drawn = odeco.load(tmp_path / "a").random_state.normal(size=9)
    np.testing.assert_array_equal(drawn, kind(bits(3)).normal(size=9))


def _stream_of_symbols(folder):
    case = BY_NAME["CategoricalHMM"]
    document, arrays = written(case.partial_fit(case.make(), slice(0, 2)), folder)
    head = document["learned"]["_stream"]["state"]["_waiting"][0]["state"]
    return document, arrays, head


@pytest.mark.parametrize("symbol", [-1, 5, 10**6])
def test_steps_of_unknown_codes(symbol, tmp_path):
    document, arrays, head = _stream_of_symbols(tmp_path)
    arrays[head["codes"]["name"]][7] = symbol
    refused(document, arrays, tmp_path, "_stream should be")


def test_an_alphabet_of_another_size(tmp_path):
    """Steps may be of more symbols than the model has emissions for, all of them sound by themselves."""
    case = BY_NAME["CategoricalHMM"]
    document, arrays = written(case.partial_fit(case.make(), slice(0, 1)), tmp_path)
    head = document["learned"]["_stream"]["state"]["_waiting"][0]["state"]
    arrays[head["values"]["name"]] = np.append(np.arange(10), -1)
    refused(document, arrays, tmp_path, "symbols")


def test_symbols_that_are_no_integers(tmp_path):
    document, arrays, head = _stream_of_symbols(tmp_path)
    arrays[head["values"]["name"]] = arrays[head["values"]["name"]].astype(np.float64)
    refused(document, arrays, tmp_path, "_stream should be")


@pytest.mark.parametrize("symbol", [-2, 4, 10**6])
def test_symbols_outside_of_the_alphabet(symbol, tmp_path):
    document, arrays, head = _stream_of_symbols(tmp_path)
    arrays[head["values"]["name"]][1] = symbol
    refused(document, arrays, tmp_path, "_stream should be")


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_symbols_of_any_type_of_integers_are_kept(dtype, tmp_path):
    case = BY_NAME["CategoricalHMM"]
    model = case.make().partial_fit(case.chunks()[0].astype(dtype))
    odeco.save(model, tmp_path / "a")
    np.testing.assert_array_equal(odeco.load(tmp_path / "a").emissionprob_, model.emissionprob_)


def _changed(name, attribute, change, folder, **parameters):
    """A fitted model with one learned array changed."""
    document, arrays = written(BY_NAME[name].fit(), folder)
    place = document["learned"][attribute]["name"]
    arrays[place] = change(arrays[place].copy())
    document["parameters"].update(parameters)
    return document, arrays


def _with_nan(array):
    array.flat[0] = np.nan
    return array


@pytest.mark.parametrize(
    ("name", "attribute", "change"),
    [
        ("SingleTopicModel", "components_", lambda a: a[:, :-1]),
        ("LatentDirichletAllocation", "components_", lambda a: a[:-1]),
        ("LatentDirichletAllocation", "components_", lambda a: 2 * a),
        ("LatentDirichletAllocation", "components_", _with_nan),
        ("SingleTopicModel", "weights_", lambda a: a - 0.5),
        ("SingleTopicModel", "weights_", lambda a: a.astype(np.float16)),
        ("GaussianMixture", "means_", _with_nan),
        ("GaussianMixture", "covariances_", lambda a: -a),
        ("GaussianHMM", "transmat_", lambda a: a[:, :1]),
        ("GaussianHMM", "startprob_", lambda a: np.zeros_like(a)),
        ("CategoricalHMM", "emissionprob_", lambda a: a + 1),
        ("DawidSkene", "confusion_", lambda a: a[:, :, :2]),
        ("ICA", "components_", lambda a: a[:, :2]),
        ("ProductMixture", "_table", lambda a: a[:, :-1]),
    ],
)
def test_learned_arrays_that_nothing_has_learned(name, attribute, change, tmp_path):
    refused(*_changed(name, attribute, change, tmp_path), tmp_path, "damaged")


@pytest.mark.parametrize("kind", ["diag", "full", "tied", "tied_spherical"])
def test_covariances_of_another_type(kind, tmp_path):
    forged = _changed("GaussianMixture", "covariances_", lambda a: a, tmp_path, covariance_type=kind)
    refused(*forged, tmp_path, "covariances_")


@pytest.mark.parametrize(
    ("name", "attribute"),
    [("SingleTopicModel", "n_features_in_"), ("GaussianMixture", "weights_"), ("CategoricalHMM", "n_symbols_")],
)
def test_a_part_that_is_missing(name, attribute, tmp_path):
    """Without the number of features, wider rows would go to loops over narrower parameters."""
    document, arrays = written(BY_NAME[name].fit(), tmp_path)
    del document["learned"][attribute]
    refused(document, arrays, tmp_path, f"{attribute} is missing")


def test_columns_of_a_table_by_several_accounts(tmp_path):
    document, arrays = written(BY_NAME["ProductMixture"].fit(), tmp_path)
    families = document["learned"]["_families"]["state"]
    families["poisson"], families["gaussian"] = families["gaussian"], families["poisson"]
    refused(document, arrays, tmp_path, "_families and _schema disagree")


def test_documents_that_wait(tmp_path):
    """All there are, as long as there are no sums."""
    model = odeco.SingleTopicModel(3, basis_size=10_000, random_state=0)
    document, arrays = written(BY_NAME["SingleTopicModel"].partial_fit(model, slice(0, 2)), tmp_path)
    document["learned"]["_stream"]["state"]["n"] = 10**15
    refused(document, arrays, tmp_path, "_stream should be")


def test_streams_of_another_model(tmp_path):
    """Sums that the estimator does not make would end in words of their own when they are read."""
    document, arrays = written(BY_NAME["GaussianMixture"].partial_fit(odeco.GaussianMixture(2), slice(0, 2)), tmp_path)
    other, more = written(BY_NAME["ICA"].partial_fit(odeco.ICA(2), slice(0, 2)), tmp_path)
    renamed = re.sub(r'"(name|array)": "(\d+)"', r'"\1": "other-\2"', json.dumps(other["learned"]["_stream"]))
    document["learned"]["_stream"] = json.loads(renamed)
    refused(document, {**arrays, **{f"other-{name}": a for name, a in more.items()}}, tmp_path, "_stream should be")


def _no_copies(sums):
    sums.pairs._products._copies = sums.pairs._products._copies[:0]


def _features_of_other_columns(sums):
    features = sums.triples.features
    sums.triples.features = replace(features, owner=np.ascontiguousarray(features.owner[::-1]))


def _products_of_columns(sums):
    triples = sums.triples[0]
    triples.products = triples.seen_products = np.zeros((*triples.seen.shape, triples.seen.shape[1]))


def _views_that_no_group_has(sums):
    basis = replace(sums.search.basis, groups=((0,), (1,), (1,)))
    sums.search = replace(sums.search, basis=basis)


def _votes_that_count_twice(sums):
    sums.groupings[0]._sum.data[0] = 2


# What words cannot say of sums: each breaks one rule, and nothing else.
BROKEN_SUMS = {
    "ScatterSum": ("SingleTopicModel", _no_copies),
    "WordTriples": ("LatentDirichletAllocation", lambda sums: setattr(sums.triples, "_parts", [])),
    "StreamedTable": ("ProductMixture binary", _features_of_other_columns),
    "FeatureTriples": ("GaussianHMM", _products_of_columns),
    "FourthMoments": ("ICA", lambda sums: setattr(sums.fourth, "_gram", np.zeros((2, 2)))),
    "ViewBasis": ("MultiViewMixture", _views_that_no_group_has),
    "CrowdMoments": ("DawidSkene", _votes_that_count_twice),
}


@pytest.mark.parametrize("kind", BROKEN_SUMS)
def test_sums_that_break_a_rule(kind, tmp_path):
    assert classes()[kind].rule is not None
    name, spoil = BROKEN_SUMS[kind]
    case = BY_NAME[name]
    model = case.partial_fit(case.make(), slice(0, 2))
    model._stream.settle(model._plan())
    odeco.save(model, tmp_path / "good")
    spoil(model._stream.sums)
    with pytest.raises(ValueError, match="_stream should be"):
        odeco.save(model, tmp_path / "bad")


def test_rows_that_break_a_rule(tmp_path):
    documents = BY_NAME["SingleTopicModel"].partial_fit(BY_NAME["SingleTopicModel"].make(), slice(0, 1))
    documents._stream._waiting[0].counts.data[0] = -1
    table = BY_NAME["ProductMixture binary"].partial_fit(BY_NAME["ProductMixture binary"].make(), slice(0, 1))
    piece = table._stream._waiting[0].pieces[0]
    table._stream._waiting[0] = replace(
        table._stream._waiting[0], pieces=[replace(piece, weights=np.ones(len(piece.rows) + 1))]
    )
    for model in (documents, table):
        with pytest.raises(ValueError, match="_stream should be"):
            odeco.save(model, tmp_path / "bad")


def test_columns_of_two_families(tmp_path):
    model = BY_NAME["ProductMixture"].fit()
    model._families = replace(model._families, poisson=model._families.gaussian)
    with pytest.raises(ValueError, match="_families should be"):
        odeco.save(model, tmp_path / "bad")


def test_directions_that_are_too_few(tmp_path):
    model = BY_NAME["SingleTopicModel"].partial_fit(BY_NAME["SingleTopicModel"].make(), slice(0, 2))
    model._stream.options["n_components"] = 1000
    with pytest.raises(ValueError, match=r"_stream has \d+ directions for 1000 components"):
        odeco.save(model, tmp_path / "bad")


def test_columns_are_not_shared_with_what_is_written_to(tmp_path):
    """Columns of counts that are also sums would be checked first, and then added to."""
    model = odeco.SingleTopicModel(3, basis_size=100, random_state=0)
    document, arrays = written(BY_NAME["SingleTopicModel"].partial_fit(model, slice(0, 2)), tmp_path)
    stream = document["learned"]["_stream"]["state"]
    batch = stream["_waiting"][0]["state"]
    arrays["shared"] = np.zeros(3, dtype=np.int64)
    arrays["ones"], arrays["ends"], arrays["one"] = np.ones(3, dtype=np.float32), np.array([0, 3]), np.ones(1)
    stream["sums"]["state"]["frequencies"]["state"]["n_at_least"] = {"is": "array", "name": "shared"}
    batch["counts"].update(data="ones", indices="shared", indptr="ends", shape=[1, 25])
    stream["_waiting"] = stream["_waiting"][:1]
    batch["lengths"], batch["weights"] = {"is": "array", "name": "one"}, None
    archive.write(tmp_path / "bad", "model", 2, document, arrays)
    loaded = odeco.load(tmp_path / "bad")._stream
    loaded.sums.frequencies.n_at_least += 10**9
    assert loaded._waiting[0].counts.indices.max() == 0


def test_products_of_votes_are_numbers_to_add_to(tmp_path):
    """They stand in a mapping, of which the words say nothing."""
    case = BY_NAME["DawidSkene"]
    document, arrays = written(case.partial_fit(case.make(), slice(0, 2)), tmp_path)
    cross = document["learned"]["_stream"]["state"]["sums"]["state"]["groupings"][0]["state"]["_views"]["state"][
        "_cross"
    ]
    name = cross["items"][0][1]["name"]
    refused(document, {**arrays, name: arrays[name].astype(np.uint32)}, tmp_path, "_stream should be")


def test_the_words_about_a_damaged_zip_are_few(tmp_path):
    odeco.save(odeco.ICA(2), tmp_path / "a")
    content = bytearray((tmp_path / "a").read_bytes())
    content[26:28] = (60_000).to_bytes(2, "little")  # how long the name of the first file is: zipfile quotes it
    (tmp_path / "a").write_bytes(bytes(content))
    with pytest.raises(odeco.ModelFileError, match="damaged") as error:
        odeco.load(tmp_path / "a")
    assert len(str(error.value)) < 500
