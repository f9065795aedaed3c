from __future__ import annotations

import numpy as np

from odeco.refinement.loop import StoppingRule, StopReason, run_refinement


def follow(values):
    """A step that walks through given values; the state is the number of steps."""
    return lambda state, iteration: (state + 1, values[iteration - 1])


def test_stops_where_the_gain_falls_below_tol():
    refined = run_refinement(follow([1.0, 2.0, 2.5, 2.5001, 9.0]), 0, StoppingRule(max_iter=5, tol=1e-3))
    assert refined.state == 4
    assert refined.trace.n_iter == 4
    assert refined.trace.reason is StopReason.CONVERGED
    assert refined.trace.converged


def test_returns_the_best_state_not_the_last():
    refined = run_refinement(follow([1.0, 3.0, 2.0, 1.0]), 0, StoppingRule(max_iter=4, tol=0.1, patience=2))
    assert refined.state == 2
    np.testing.assert_array_equal(refined.trace.values, [1.0, 3.0, 2.0, 1.0])


def test_patience_waits_for_a_later_gain():
    refined = run_refinement(follow([1.0, 0.9, 3.0, 3.0, 3.0]), 0, StoppingRule(max_iter=5, tol=0.1, patience=2))
    assert refined.state == 3


def test_the_cap_is_told():
    refined = run_refinement(follow([1.0, 2.0, 3.0]), 0, StoppingRule(max_iter=3, tol=0.1))
    assert refined.trace.reason is StopReason.MAX_ITER
    assert not refined.trace.converged


def test_steps_without_a_look_run_to_the_cap():
    refined = run_refinement(follow([None, None, None]), 0, StoppingRule(max_iter=3))
    assert refined.state == 3
    assert refined.trace.reason is StopReason.NOT_WATCHED
    assert refined.trace.records == ()


def test_no_steps_at_all():
    refined = run_refinement(follow([]), 0, StoppingRule(max_iter=0))
    assert refined.state == 0
    assert refined.trace.n_iter == 0


def test_a_start_whose_value_is_known_is_kept_unless_bettered():
    refined = run_refinement(follow([1.0, 1.5]), 0, StoppingRule(max_iter=2, tol=0.1, patience=2), value=2.0)
    assert refined.state == 0
    better = run_refinement(follow([1.0, 2.5]), 0, StoppingRule(max_iter=2, tol=0.1, patience=2), value=2.0)
    assert better.state == 2


def test_traces_in_a_row():
    first = run_refinement(follow([1.0, 2.0]), 0, StoppingRule(max_iter=2, tol=0.1)).trace
    second = run_refinement(follow([3.0, 3.0]), 0, StoppingRule(max_iter=5, tol=0.1), value=first.best).trace
    both = first.then(second)
    assert [record.iteration for record in both.records] == [1, 2, 3, 4]
    assert both.n_iter == 4
    assert both.converged
    assert both.best == 3.0
