"""Every estimator chooses its number of components from the data, wherever the rows lie, and keeps the choice."""

import json

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

import odeco
from odeco import simulate
from odeco.models.cards import OWN, card_of
from odeco.report import render_report
from odeco.sources import checkpointed, out_of_core
from tests.command_line import call, written

RNG = np.random.default_rng(0)


def topics():
    found = np.full((3, 20), 0.005)
    for i in range(3):
        found[i, 6 * i : 6 * i + 6] = np.linspace(2.0, 0.5, 6)
    return found / found.sum(axis=1, keepdims=True)


def chain(n):
    return simulate.markov_chain(n, 0.85 * np.eye(3) + 0.05, random_state=0)


MEANS = np.array([[0.0, 0, 0, 0], [7, 0, 0, 0], [0, 7, 0, 0]])
WEIGHTS = [0.4, 0.35, 0.25]


def drawn():
    """Data of three components for every model that are easy to tell apart."""
    rng = np.random.default_rng(1)
    sharp = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    sources = np.column_stack([rng.laplace(size=1500), rng.uniform(-1.7, 1.7, 1500), rng.laplace(size=1500)])
    return {
        "lda": simulate.lda_documents(400, topics(), np.full(3, 0.1), mean_length=50, random_state=1).counts,
        "single-topic": simulate.single_topic_documents(300, topics(), WEIGHTS, random_state=1).counts,
        "gaussian-mixture": simulate.gaussian_mixture(300, MEANS, WEIGHTS, random_state=1).rows,
        "product-mixture": simulate.latent_classes(300, WEIGHTS, [sharp] * 6, random_state=1).codes,
        "multiview": simulate.gaussian_views(300, [MEANS] * 3, WEIGHTS, random_state=1).views,
        "dawid-skene": simulate.crowd_labels(150, np.array([sharp] * 6), WEIGHTS, random_state=1).labels,
        "hmm": simulate.draw_symbols(np.repeat(sharp, 2, axis=1) / 2, chain(1500), rng),
        "gaussian-hmm": MEANS[chain(600)][:, :2] + rng.standard_normal((600, 2)),
        "poisson-hmm": rng.poisson(np.array([1.0, 8, 30])[chain(600)])[:, None],
        "ica": sources @ rng.standard_normal((3, 6)) + 0.1 * rng.standard_normal((1500, 6)),
    }


@pytest.fixture(scope="module")
def data():
    return drawn()


def estimator(name, number="auto", **options):
    card = next(card for card in OWN if card.name == name)
    return card.load()(**{card.count: number}, random_state=0, **options)


def test_every_model_is_here(data):
    assert set(data) == {card.name for card in OWN}


@pytest.mark.parametrize("name", [card.name for card in OWN])
def test_every_estimator_finds_its_number(data, name, tmp_path):
    quick = {"effort": "quick"} if "hmm" in name or name == "product-mixture" else {}  # starts are not the subject
    model = estimator(name, **quick).fit(data[name])
    card = card_of(model)
    assert model.n_components_ == model.diagnostics_.n_components == 3
    assert model.get_params()[card.count] == "auto"
    assert clone(model).get_params()[card.count] == "auto"
    choice = model.diagnostics_.details["choice"]
    assert choice.best == 3
    assert choice.reason.endswith(".")
    odeco.save(model, tmp_path / "model.odeco")
    loaded = odeco.load(tmp_path / "model.odeco")
    assert loaded.n_components_ == 3
    assert loaded.get_params() == model.get_params()
    kept = loaded.diagnostics_.details["choice"]
    assert (kept.best, kept.reason, kept.plausible) == (choice.best, choice.reason, choice.plausible)
    assert [row.bic for row in kept] == pytest.approx([row.bic for row in choice], nan_ok=True)
    assert choice.reason in render_report(loaded).replace("&#39;", "'")


def test_the_fit_is_that_of_the_chosen_number(data):
    auto = estimator("gaussian-mixture").fit(data["gaussian-mixture"])
    given = estimator("gaussian-mixture", 3).fit(data["gaussian-mixture"])
    np.testing.assert_allclose(auto.means_, given.means_, atol=1e-3)  # EM ends at a gain of 1e-4
    assert auto.bic(data["gaussian-mixture"]) == pytest.approx(given.bic(data["gaussian-mixture"]), abs=0.1)
    auto.n_components = 2
    auto.fit(data["gaussian-mixture"])
    assert not hasattr(auto, "n_components_")
    assert "choice" not in auto.diagnostics_.details


@pytest.fixture(scope="module")
def choice(data):
    return odeco.choose_components(estimator("gaussian-mixture", 1), data["gaussian-mixture"], range(1, 6))


def test_evidence_of_every_kind(data, choice):
    assert choice.best == 3
    assert [row.n_components for row in choice] == [1, 2, 3, 4, 5]
    model = estimator("gaussian-mixture", 3).fit(data["gaussian-mixture"])
    best = choice.evidence(3)
    assert best.bic == pytest.approx(model.bic(data["gaussian-mixture"]), abs=0.1)
    assert best.icl >= best.bic
    assert best.replication > 0.95
    assert choice.evidence(5).replication < 0.8  # a cluster that is cut in two is not cut in the same place again
    assert best.held_out == max(row.held_out for row in choice)
    assert 0 < best.held_out_error < 0.2
    assert best.above_noise
    assert not choice.evidence(4).above_noise
    frame = choice.to_frame()
    assert frame.index.tolist() == [1, 2, 3, 4, 5]
    assert frame.loc[3, "bic"] == best.bic
    with pytest.raises(ValueError, match="n_components=9 was not looked at: 1, 2, 3, 4, 5 were"):
        choice.evidence(9)


def test_figure(choice):
    pytest.importorskip("matplotlib")
    ax = choice.plot()
    assert ax.get_ylabel() == "BIC (smaller is better)"
    assert ax.get_title() == choice.reason
    assert sorted(ax.lines[0].get_xdata()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("criterion", ["icl", "held_out", "replication", "spectrum"])
def test_other_criteria(data, criterion):
    model = estimator("gaussian-mixture", 1)
    found = odeco.choose_components(model, data["gaussian-mixture"], range(1, 5), criterion=criterion, halves=False)
    assert (found.best, found.criterion) == (3, criterion)


def test_numbers_are_watched(data):
    seen = []
    odeco.choose_components(
        estimator("ica", None), data["ica"], [2, 3], watch=lambda row: seen.append(row.n_components), halves=False
    )
    assert seen == [3]  # the spectrum of the largest fit tells all


PLACES = {
    "list of batches": lambda rows: np.array_split(rows, 4),
    "function": lambda rows: lambda: iter(np.array_split(rows, 3)),
    "out of core": lambda rows: out_of_core(lambda: iter(np.array_split(rows, 3))),
    "Dask": lambda rows: da.from_array(rows, chunks=(110, rows.shape[1])),
}


@pytest.mark.parametrize("place", PLACES)
def test_rows_may_lie_anywhere(data, choice, place):
    model = estimator("gaussian-mixture", 1, effort="quick")
    found = odeco.choose_components(model, PLACES[place](data["gaussian-mixture"]), range(2, 5))
    assert found.best == 3
    assert found.evidence(3).bic == pytest.approx(choice.evidence(3).bic, abs=0.1)
    assert found.evidence(3).replication > 0.95
    assert found.evidence(3).held_out == pytest.approx(choice.evidence(3).held_out, abs=0.1)


def test_documents_elsewhere(data):
    counts = data["lda"].toarray()
    lazy = da.from_array(counts, chunks=(150, 20))
    assert odeco.choose_components(estimator("lda", 1), lazy, range(2, 5)).best == 3


def test_sequences_elsewhere_have_a_likelihood_and_no_halves(data):
    steps = data["poisson-hmm"]
    model = estimator("poisson-hmm", 1, effort="quick")
    found = odeco.choose_components(model, lambda: iter([[steps]]), range(2, 5))
    assert found.best == 3
    assert np.isnan(found.evidence(3).held_out)
    with pytest.raises(ValueError, match="criterion='held_out' needs two halves of the rows"):
        odeco.choose_components(model, lambda: iter([[steps]]), range(2, 5), criterion="held_out")


def test_weights_are_repetitions(data):
    rows, model = data["gaussian-mixture"], estimator("gaussian-mixture", 1, effort="quick")
    weights = 1 + np.arange(len(rows)) % 2
    weighted = odeco.choose_components(model, rows, range(2, 5), halves=False, sample_weight=weights)
    repeated = odeco.choose_components(model, np.repeat(rows, weights, axis=0), range(2, 5), halves=False)
    assert weighted.evidence(3).bic == pytest.approx(repeated.evidence(3).bic, rel=1e-3)


def test_halves_too_small_for_a_number_say_so(data):
    rows = data["gaussian-mixture"][:16]
    found = odeco.choose_components(estimator("gaussian-mixture", 1, effort="quick"), rows, [2, 9])
    assert found.evidence(9).note == "a half has 8 samples: too few for 9 components"
    assert np.isnan(found.evidence(9).held_out)
    assert np.isfinite(found.evidence(2).held_out)


def test_what_cannot_be_done_is_said(data, tmp_path):
    rows, model = data["gaussian-mixture"], estimator("gaussian-mixture")
    with pytest.raises(ValueError, match="n_components='auto' compares fits to all rows, and a stream keeps none"):
        model.partial_fit(rows)
    with pytest.raises(ValueError, match="n_classes='auto' compares fits"):
        estimator("dawid-skene").partial_fit(data["dawid-skene"])
    with pytest.raises(ValueError, match="passes over the data are needed, but an iterator can be read only once"):
        model.fit(iter([rows]))
    with pytest.raises(ValueError, match="X is an iterator, which can be read only once: pass a list of sequences"):
        estimator("poisson-hmm").fit(iter([data["poisson-hmm"]]))
    with pytest.raises(ValueError, match="n_components must be a positive integer or 'auto', got 'AUTO'"):
        estimator("gaussian-mixture", "AUTO").fit(rows)
    with pytest.raises(ValueError, match="criterion must be one of 'auto', 'bic'"):
        odeco.choose_components(model, rows, [2, 3], criterion="aic")
    with pytest.raises(ValueError, match="candidates go up to 301, and there are 300 samples"):
        odeco.choose_components(model, rows, [2, 301])
    with pytest.raises(ValueError, match="n_classes=4, but X has 3 different labels"):
        odeco.choose_components(estimator("dawid-skene"), data["dawid-skene"], [2, 4])
    with pytest.raises(ValueError, match="candidates go up to 7, and ICA can have 6 with these columns"):
        odeco.choose_components(estimator("ica"), data["ica"], [2, 7])
    with pytest.raises(ValueError, match="n_samples=1: a number of components cannot be chosen|minimum of 2"):
        odeco.choose_components(estimator("product-mixture"), data["product-mixture"][:1])
    with pytest.raises(ValueError, match="checkpoints keep the sums of one fit"):
        model.fit(checkpointed(rows, tmp_path / "kept"))
    with pytest.raises(ValueError, match="estimator must be one of odeco's, got dict"):
        odeco.choose_components({}, rows)
    with pytest.raises(odeco.MomentError, match="no number of components has any evidence of the kind criterion='bic'"):
        odeco.choose_components(estimator("ica", None), data["ica"], [2, 3], criterion="bic", halves=False)


# The command line.


def test_choose_on_the_command_line(tmp_path):
    groups = written("gaussian-mixture", tmp_path)
    common = ("choose", "gaussian-mixture", groups, "--columns", "a,b,c", "-k", "1..4", "--fast")
    done = call(*common)
    assert done.returncode == 0
    assert done.stdout.startswith("2 components: BIC is least at 2 components")
    assert "compared 4 numbers of components" in done.stderr
    for name in ("evidence.csv", "evidence.json"):
        assert call(*common, "--out", tmp_path / name).returncode == 0
    told = json.loads((tmp_path / "evidence.json").read_text())
    assert told["best"] == 2
    assert [row["n_components"] for row in told["table"]] == [1, 2, 3, 4]
    assert (tmp_path / "evidence.csv").read_text().startswith("n_components,eigenvalue,above_noise")


def test_fit_with_a_number_that_is_chosen(tmp_path):
    groups, model = written("gaussian-mixture", tmp_path), tmp_path / "model.odeco"
    for number in ("auto", "2..4"):
        done = call("fit", "gaussian-mixture", groups, "--columns", "a,b,c", "-k", number, "--out", model)
        assert done.returncode == 0
        assert "chosen: 2 components. BIC is least at 2 components" in done.stderr
        assert odeco.load(model).n_components_ == 2
    done = call("fit", "hmm", written("hmm", tmp_path), "--unit", "characters", "-k", "1..2", "--effort", "quick",
                "--out", model)  # fmt: skip
    assert (done.returncode, odeco.load(model).n_components_) == (0, 2)


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        ("4..2", 2, "holds no number: write the smaller one first"),
        ("0..3", 2, "not in the range x>=1"),
        ("many", 2, "neither a number, nor 'auto', nor numbers to choose from such as 2..30"),
        ("2..500", 1, "-k 500 is more than the 200 rows"),
    ],
)
def test_numbers_that_cannot_be(tmp_path, number, code, said):
    groups = written("gaussian-mixture", tmp_path)
    done = call("fit", "gaussian-mixture", groups, "--columns", "a,b,c", "-k", number, "--out", tmp_path / "m.odeco")
    assert done.returncode == code
    assert said in done.stderr


def test_faults_of_choose(tmp_path):
    groups = written("gaussian-mixture", tmp_path)
    done = call("choose", "gaussian-mixture", groups, "--columns", "a,b,c", "--out", tmp_path / "evidence.xyz")
    assert done.returncode == 1
    assert "the format of" in done.stderr
    done = call("choose", "gaussian-mixture", groups, "--criterion", "aic")
    assert done.returncode == 2
    done = call("moments", "basis", "gaussian-mixture", groups, "--columns", "a,b,c", "-k", "auto", "--out",
                tmp_path / "b.odeco-basis")  # fmt: skip
    assert (done.returncode, "-k must be a number here" in done.stderr) == (1, True)
