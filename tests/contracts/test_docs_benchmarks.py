"""What `make bench` runs and writes: overview, curves and scaling, and what result files may hold."""

from __future__ import annotations

import platform
import time
from importlib import import_module

import pytest

from benchmarks import __main__ as main
from benchmarks import before, curves, front_page, harness, overview, provenance, scaling, stages
from benchmarks import errors as slopes
from benchmarks.cases import CASES
from benchmarks.provenance import Environment, Result, Section

ENVIRONMENT = Environment("3", "a processor", {"odeco": "0"})


def result_of(summaries=None, **runs):
    sections = {name: Section(ENVIRONMENT, (), found, date="2026-01-01") for name, found in runs.items()}
    return Result(sections, summaries or {})


@pytest.mark.parametrize("path", sorted(provenance.RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_name_versions_and_processor_but_no_host_and_no_path(path):
    text = path.read_text()
    for section in provenance.stored(path.stem).values():
        assert section.environment.processor
        assert section.environment.python
        assert section.environment.packages
    for private in (f'"{platform.node()}"', "/home/", "/tmp/", "/root/", "C:\\\\"):
        assert private not in text


def measured(seconds, qualities):
    runs = {
        who: [{"seconds": s, "quality": q} for s, q in zip(seconds[who], qualities[who], strict=True)]
        for who in seconds
    }
    return {
        "runs": runs,
        "threads": 1,
        "sizes": [10, 2],
        "memory": {"odeco": 1e6},
    }


def test_the_overview_counts_optima_and_compares_times_on_the_same_data_sets():
    case = CASES["spheres"]  # higher is better, within 0.002
    result = measured(
        {"odeco": [1.0, 2.0, 1.0], "scikit-learn, n_init=10": [10.0, 30.0]},
        {"odeco": [-5.0, -5.0, -5.0], "scikit-learn, n_init=10": [-5.001, -4.9]},
    )
    table = overview.summary(case, result)
    assert table["odeco"]["reached"] == 2  # the peer was better on the second data set, and was not run on the third
    assert table["scikit-learn, n_init=10"]["reached"] == 2
    assert table["scikit-learn, n_init=10"]["ratio"] == 12.5
    assert table["scikit-learn, n_init=10"]["difference"] == pytest.approx((-0.001 + 0.1) / 2)
    lower = overview.summary(
        CASES["signals"], measured({"odeco": [1.0], "picard": [1.0]}, {"odeco": [1.0], "picard": [2.0]})
    )
    assert (lower["odeco"]["reached"], lower["picard"]["reached"]) == (1, 0)
    whole = result_of(spheres=result)
    assert "| scikit-learn, n_init=10 | 20 s | 30 s | 12 |" in overview.docs_tables(whole)
    assert front_page.drawn("spheres", whole)[1:] == [
        "scikit-learn, n_init=10",
        "12x",
        "better by 0.049 (held-out log-likelihood)",
    ]


def test_an_older_commit_is_compared_by_the_best_round_of_each_data_set():
    runs = {"before": [[3.0, 9.0], [4.0, 2.0]], "now": [[1.0, 2.0], [5.0, 0.25]]}
    text = before.docs_tables(result_of(signals=runs))
    assert "| `ICA` | 5.00 s | 1.25 s | 4.00 | 3.00 s | 1.00 s |" in text


def test_curves_are_drawn_and_tabled(tmp_path):
    ours = [
        {"budget": "refine=None", "seconds": 0.1, "quality": -3.0},
        {"budget": "default", "seconds": 1.0, "quality": -1.0},
    ]
    peer = [{"budget": 1, "seconds": 0.5, "quality": -4.0}, {"budget": 100, "seconds": 50.0, "quality": -2.0}]
    errors = [{"budget": 100, "quality": [1.0, 2.0, 9.0]}, {"budget": 400, "quality": [1.0]}]
    result = result_of(
        curves.SUMMARIES,
        symbols={"data": "some", "curves": {"odeco": ours, "hmmlearn": peer}},
        signals={"data": "more", "curves": {"odeco": errors}},
        errors={"curves": {"ICA": [{"n": 100, "errors": [8.0, 1.0, 2.0]}, {"n": 1600, "errors": [0.5]}]}},
    )
    panel = curves.PANELS["symbols"]  # within 0.001
    assert curves.reached(ours, -2.0, panel) == 1.0
    assert curves.reached(peer, -1.9995, panel) == 50.0
    assert curves.reached(peer, -1.0, panel) is None
    lower = curves.PANELS["topics"]  # within half a per cent
    assert curves.reached([{"seconds": 2.0, "quality": 1004.0}], 1000.0, lower) == 2.0
    assert curves.reached([{"seconds": 2.0, "quality": 1006.0}], 1000.0, lower) is None
    text = curves.docs_tables(result)
    assert "| odeco | -1 | 1 s | 1 s |" in text
    assert "| hmmlearn | -2 | never | 50 s |" in text
    assert "| odeco | 2.00 | 1.00 | -0.50 |" in text
    assert "| ICA | 2 (n = 100) | 0.5 (n = 1,600) | -0.50 |" in text
    harness.save_figure(tmp_path / "curves.png", lambda figure: curves.draw(result, figure))
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    harness.save_figure(tmp_path / "errors.png", lambda figure: slopes.draw(result["errors"]["curves"], figure))
    assert (tmp_path / "errors.png").stat().st_size > 5_000


def test_scaling_is_drawn_and_tabled(tmp_path):
    points = [{"value": 10, "seconds": [1.0, 7.0, 0.5]}, {"value": 100, "seconds": [100.0]}]
    rows = [{"stage": "EM", "seconds": 2.0, "flops": 1e9, "bytes": 1e9, "precision": "float64"}]
    table = {
        "sizes": [5], "seconds": 4.0, "stages": rows,
        "gemm float32": [9e9], "gemm float64": [1e9, 1e9, 5e9], "memory": [2e9],
    }  # fmt: skip
    sweeps = {"ICA": {"base": {"n": 10}, "axes": {"n": points}}}
    result = result_of(
        scaling.SUMMARIES,
        sweeps=sweeps,
        stages={"signals": {"1": table, "2": table | {"seconds": 2.0, "stages": [rows[0] | {"seconds": 1.0}]}}},
    )
    text = scaling.docs_tables(result)
    assert "| `ICA` | 2.00 |" in text
    assert "| EM | 50 % | 1 | 1 | 2e+03 ms | 50 % | 1e+03 ms | 100 % | 2.00x |" in text
    assert "| everything else | 50 % |" in text
    assert "| all | 100 % |  |  | 4e+03 ms |  | 2e+03 ms |  | 2.00x |" in text
    harness.save_figure(tmp_path / "scaling.png", lambda figure: scaling.draw_sweeps(result, figure))
    assert (tmp_path / "scaling.png").stat().st_size > 10_000


@pytest.mark.parametrize("stage", [s for rows in stages.STAGES.values() for s in rows], ids=lambda stage: stage.label)
def test_every_stage_is_a_function_of_the_library(stage):
    holder, name = stages.resolve(stage.place)
    assert callable(getattr(holder, name))


def test_a_stage_within_another_is_counted_for_the_inner_one_alone():
    rows = [
        stages.Stage("benchmarks.harness:markdown_table", "outer", lambda data, model: (0.0, 0.0)),
        stages.Stage("benchmarks.harness:slope", "inner", lambda data, model: (0.0, 0.0)),
    ]

    def cells():
        harness.slope([1, 10], [1, 10])
        begin = time.perf_counter()
        while time.perf_counter() < begin + 0.01:
            pass
        yield from ()

    with stages._clocks(rows) as spent:
        begin = time.perf_counter()
        harness.markdown_table([], cells())
        whole = time.perf_counter() - begin
    assert spent["benchmarks.harness:slope"] > 0
    assert spent["benchmarks.harness:markdown_table"] >= 0.01
    assert sum(spent.values()) <= whole  # nothing was counted twice
    assert not hasattr(harness.slope, "__wrapped__")  # and the functions are themselves again


def test_sections_are_measured_in_processes_of_their_own(monkeypatch):
    asked = []

    def child(module, *arguments):
        asked.append((module, *arguments))
        return provenance.plain({arguments[-1]: Section(ENVIRONMENT, (), 1)})

    monkeypatch.setattr(harness, "child", child)
    merged = main.by_section("gaussian_mixture")
    sections = list(import_module("benchmarks.gaussian_mixture").SECTIONS)
    assert asked == [("benchmarks", "gaussian_mixture", "--raw", "--only", section) for section in sections]
    assert merged == dict.fromkeys(sections, Section(ENVIRONMENT, (), 1))
    asked.clear()
    main.by_section("overview")  # makes its own processes
    assert asked == [("benchmarks", "overview", "--raw")]


@pytest.mark.parametrize("name", main.NAMES)
def test_every_benchmark_measures_and_reports(name):
    bench = import_module(f"benchmarks.{name}")
    assert all(callable(getattr(bench, function)) for function in ("run", "report", "docs_tables"))
    assert name in main.QUICK or f"bench-{name.replace('_', '-')}:" in (harness.ROOT / "Makefile").read_text()


def test_the_slope_of_a_power_is_its_exponent():
    assert harness.slope([1, 10, 100], [3, 0.3, 0.03]) == pytest.approx(-1.0, abs=1e-12)
