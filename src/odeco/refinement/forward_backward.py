"""Forward-backward over all sequences at once: linear in time, with memory that does not grow with the data.

The steps of all sequences are cut into stretches of equal length, eight of which run in lockstep in one task of the
compiled loops (`odeco.kernels.hmm`). A stretch that begins within a sequence starts a little earlier to find its
message; afterwards every such message is compared with the one its neighbour ends with. Where they differ the
stretches start still earlier, and where a model does not forget at all the messages are found by one pass through all
steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from threading import local
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from odeco.refinement.emissions import Emission, HMMParameters, Statistics
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]
Steps = tuple[NDArray[np.int32], NDArray[np.uint8], Floats]
Wanted = Literal["likelihood", "filter", "posterior", "statistics"]

_room = local()

_STRETCH = 1024  # steps of a stretch: eight of them with their messages stay in the second-level cache
_SHORTEST = 256
FIRST_BURN = 32  # steps before a stretch at first
_WORTH_A_THREAD = 3e5  # nanoseconds: a thread takes a third of that to start, at worst
_KEPT = 2**18  # steps up to which what the kernels want of them is kept from pass to pass, 5 bytes each
_PARTS = (1, 2, 4, 8)  # tasks that are summed in one
_DISTINCT = 4096  # distinct observations of which a thread takes the likelihoods at a time
_AGREE = 1e-8  # relative difference of two messages that count as one: below what a sum of 1e6 logarithms can show
_NEGLIGIBLE = 1e-60  # probabilities that no later step makes anything of


@dataclass(frozen=True, eq=False)
class Expectations:
    """What the M step needs.

    Attributes
    ----------
    log_likelihood : float
        Of all sequences, weights included.
    start, transitions : (k,), (k, k)
        Expected first states and expected transitions.
    emission : tuple of arrays
        Sums of the emission family.
    """

    log_likelihood: float
    start: Floats
    transitions: Floats = field(repr=False)
    emission: Statistics = field(repr=False)


@dataclass(frozen=True)
class Plan:
    """How steps are cut: tasks of `LANES` stretches of `length` steps each, `span` steps a task."""

    n: int
    length: int
    n_tasks: int

    @classmethod
    def of(cls, n: int) -> Self:
        """Stretches for n steps: equal shares for up to four threads, unless that would make them short."""
        from odeco.kernels.hmm import LANES

        tasks = -(-n // (LANES * _STRETCH))
        tasks = -(-tasks // 4) * 4 if n > 4 * LANES * _SHORTEST else tasks
        length = max(-(-n // (LANES * tasks)), _SHORTEST)
        return cls(n, length, -(-n // (LANES * length)))

    @property
    def span(self) -> int:
        """Steps of a task."""
        from odeco.kernels.hmm import LANES

        return LANES * self.length

    def begins(self, data: Sequences) -> NDArray[np.bool_]:
        """Which stretches begin with a sequence, or after the last one."""
        starts = np.arange(0, self.n_tasks * self.span, self.length)
        flags = np.ones(starts.size, dtype=bool)
        inside = starts < self.n
        flags[inside] = data.offsets[np.searchsorted(data.offsets, starts[inside])] == starts[inside]
        return flags


class ForwardBackward:
    """The recursions for one data set; keeps how far back stretches have to start from one call to the next."""

    def __init__(self, data: Sequences, burn: int = FIRST_BURN) -> None:
        self.data = data
        self._plan = Plan.of(len(data))
        self._burn = min(burn, self._plan.length)
        self._length, self._span, self._n_tasks = self._plan.length, self._plan.span, self._plan.n_tasks
        self._positions = np.arange(min(len(data), self._span + 2 * self._length), dtype=np.int32)

    @property
    def burn(self) -> int:
        """Steps before a stretch at which it starts."""
        return self._burn

    @cached_property
    def _steps(self) -> Steps:
        """Of all steps: the row of their likelihoods, whether they are first, and weights, as the kernels want them."""
        data, n = self.data, len(self.data)
        index = np.arange(n, dtype=np.int32) if data.codes is None else data.rows_of(0, n)
        return index, data.first(0, n), data.step_weights(0, n)

    def _steps_of(self, low: int, high: int) -> Steps:
        """The same of the steps from low to high, whose rows are those of distinct observations, or begin with 0."""
        data, here = self.data, slice(low, high)
        if len(data) <= _KEPT:
            index, first, weights = self._steps
            index, first, weights = index[here], first[here], weights[here]
        else:
            index = self._positions[:0] if data.codes is None else data.rows_of(low, high)
            first, weights = data.first(low, high), data.step_weights(low, high)
        return self._positions[: high - low] if data.codes is None else index, first, weights

    @cached_property
    def _begins(self) -> NDArray[np.bool_]:
        return self._plan.begins(self.data)

    def log_likelihood(self, parameters: HMMParameters[Any]) -> float:
        """Of all sequences, weights included."""
        return self._run(parameters, "likelihood").log_likelihood

    def filtered(self, parameters: HMMParameters[Any]) -> tuple[float, Floats]:
        """Log-likelihood, and the probabilities of each step's state given the observations up to it, (n, k)."""
        sums = self._run(parameters, "filter")
        return sums.log_likelihood, sums.rows

    def posteriors(self, parameters: HMMParameters[Any]) -> tuple[float, Floats]:
        """Log-likelihood, and the probabilities of each step's state given its whole sequence, (n, k).

        What no state can produce says nothing: steps before it have the probabilities given the observations so far.
        """
        sums = self._run(parameters, "posterior")
        lost = ~sums.rows.any(axis=1)
        if lost.any():
            sums.rows[lost] = self.filtered(parameters)[1][lost]
        # Observations at the end of the range of numbers leave products that are right up to their scale only.
        return sums.log_likelihood, sums.rows / sums.rows.sum(axis=1, keepdims=True)

    def expectations(self, parameters: HMMParameters[Any]) -> Expectations:
        """The E step."""
        sums = self._run(parameters, "statistics")
        k = parameters.n_components
        statistics = sums.emission
        if self.data.codes is not None:
            statistics = _statistics(parameters.emission, self.data.values, sums.rows)
        transitions = sums.pairs.sum(axis=2)[:k, :k] * parameters.transmat
        return Expectations(sums.log_likelihood, sums.start, transitions, statistics)

    def _run(self, parameters: HMMParameters[Any], wanted: Wanted) -> _Sums:
        """Run every task; again with stretches that start earlier until their messages agree."""
        from odeco.kernels.threads import single_threaded_blas

        model = _Model.of(parameters, self.data)
        with single_threaded_blas():
            while True:
                messages = _Messages.unknown(self._n_tasks, model)
                sums = self._all_tasks(model, wanted, messages, self._burn)
                if messages.agree(self._begins, backward=wanted in ("posterior", "statistics")):
                    return sums
                if 4 * self._burn > self._length:
                    break
                self._burn *= 4
            return self._all_tasks(model, wanted, self._exact_messages(model), 0)

    def _all_tasks(self, model: _Model, wanted: Wanted, messages: _Messages, burn: int) -> _Sums:
        from odeco.kernels.threads import map_parts

        work = len(self.data) * (30 + 0.35 * model.k**2)  # about, in nanoseconds of one thread
        # Equal shares of any number of threads, whose sums do not depend on that number.
        n_parts = max(part for part in _PARTS if part <= max(min(self._n_tasks, work / _WORTH_A_THREAD), 1))
        per_step = np.zeros((len(self.data), model.k)) if wanted in ("filter", "posterior") else None
        length = self._length if wanted != "likelihood" else 0
        if n_parts == 1:  # nobody else writes: of one pass after the other all use the same room
            scratch = _Scratch.of(model, length)
            return self._some_tasks(range(self._n_tasks), model, wanted, messages, burn, per_step, scratch)
        bounds = np.linspace(0, self._n_tasks, n_parts + 1).astype(int)

        def part(p: int) -> _Sums:
            tasks, scratch = range(bounds[p], bounds[p + 1]), _Scratch.of(model, length)
            return self._some_tasks(tasks, model, wanted, messages, burn, per_step, scratch)

        first, *others = map_parts(part, n_parts)
        for sums in others:
            first.add(sums)
        return first

    def _some_tasks(
        self, tasks: range, model: _Model, wanted: Wanted, messages: _Messages, burn: int, per_step: Floats | None,
        scratch: _Scratch,
    ) -> _Sums:  # fmt: skip
        sums = _Sums.zero(model, per_step)
        for task in tasks:
            self._task(task, model, wanted, messages, burn, sums, scratch)
        return sums

    def _task(
        self, task: int, model: _Model, wanted: Wanted, messages: _Messages, burn: int, sums: _Sums, scratch: _Scratch
    ) -> None:
        """Forward, and backward where it is wanted, through the stretches of one task."""
        from odeco.kernels.hmm import backward, forward

        low, high = max(task * self._span - burn, 0), min((task + 1) * self._span + burn, len(self.data))
        begin, steps = task * self._span - low, slice(low, high)
        rows, scales = self._likelihood(model, low, high)
        index, first, weights = self._steps_of(low, high)
        log_likelihoods = np.empty(messages.forward_out.shape[2])
        message = messages.forward_out[task]  # becomes what its name says
        forward(
            rows, scales, index, first, weights, model.transposed, model.start, begin, self._length, burn, message,
            scratch.alphas, scratch.norms, log_likelihoods,
        )  # fmt: skip
        messages.forward_used[task] = scratch.alphas[0]
        sums.log_likelihood += float(log_likelihoods.sum())
        inner = slice(begin, begin + min(self._span, len(self.data) - task * self._span))
        if wanted == "filter":
            sums.rows[steps][inner] = _by_step(scratch.alphas[1:], model.k)[: inner.stop - begin]
        if wanted in ("likelihood", "filter"):
            return
        if wanted == "posterior":
            target, row_sums, weights = self._positions[: high - low], sums.rows[steps], weights[:0]
        elif self.data.codes is not None:
            target, row_sums = index, sums.rows
        else:
            target, row_sums = index, np.zeros((high - low, model.k))
        backward(
            rows, index, first, weights, model.transmat, begin, self._length, burn, messages.backward_out[task],
            scratch.alphas, scratch.norms, target, row_sums, sums.start, sums.pairs, messages.backward_used[task],
        )  # fmt: skip
        if wanted == "statistics" and self.data.codes is None:
            sums.add_statistics(model.emission.statistics(self.data.values[steps][inner], row_sums[inner]))

    def _likelihood(self, model: _Model, low: int, high: int) -> tuple[Floats, Floats]:
        """Rows of likelihoods, and their scales: of distinct observations, or of the steps from low to high."""
        if self.data.codes is not None:
            return model.rows, model.scales
        likelihood: tuple[Floats, Floats] = model.emission.likelihood(self.data.values[low:high])
        return likelihood

    def _exact_messages(self, model: _Model) -> _Messages:
        """The messages at the ends of all stretches by one pass through all steps in each direction."""
        from odeco.kernels.hmm import advance, retreat

        messages = _Messages.unknown(self._n_tasks, model)
        transmat = np.ascontiguousarray(model.transmat[: model.k])
        starts = range(0, len(self.data), self._length)
        lanes = messages.forward_out.shape[2]
        message = np.full(model.k, 1.0 / model.k)
        for block, low in enumerate(starts):
            messages.forward_out[block // lanes, : model.k, block % lanes] = message
            high = min(low + self._length, len(self.data))
            index, first, _ = self._steps_of(low, high)
            advance(self._likelihood(model, low, high)[0], index, first, transmat, model.start, message)
        message = np.full(model.k, 1.0 / model.k)
        for block, low in reversed(list(enumerate(starts))):
            messages.backward_out[block // lanes, : model.k, block % lanes] = message
            high = min(low + self._length, len(self.data))
            index, first, _ = self._steps_of(low, high)
            retreat(self._likelihood(model, low, high)[0], index, first, transmat, message)
        return messages


def _likelihoods(emission: Emission, values: NDArray[Any]) -> tuple[Floats, Floats]:
    """Rows and scales of distinct observations, on threads where there are many."""
    from odeco.kernels.threads import map_parts

    parts = _parts_of(len(values))
    if len(parts) == 1:
        return emission.likelihood(values)
    rows, scales = zip(*map_parts(lambda p: emission.likelihood(values[parts[p]]), len(parts)), strict=True)
    return np.concatenate(rows), np.concatenate(scales)


def _statistics(emission: Emission, values: NDArray[Any], weights: Floats) -> Statistics:
    """Sums over distinct observations, on threads where there are many."""
    from odeco.kernels.threads import map_parts

    parts = _parts_of(len(values))
    found = map_parts(lambda p: emission.statistics(values[parts[p]], weights[parts[p]]), len(parts))
    return tuple(sum(others, first) for first, *others in zip(*found, strict=True))


def _parts_of(n: int) -> list[slice]:
    return [slice(low, low + _DISTINCT) for low in range(0, max(n, 1), _DISTINCT)]


def _by_step(lanes: Floats, k: int) -> Floats:
    """Messages (length, kp, LANES) of consecutive stretches as rows (steps, k) in the order of the steps."""
    return lanes[:, :k].transpose(2, 0, 1).reshape(-1, k)


@dataclass(frozen=True, eq=False)
class _Model:
    """Parameters as the kernels want them: padded, and the likelihoods of distinct observations where there are few."""

    k: int
    emission: Any
    start: Floats
    transmat: Floats
    transposed: Floats
    rows: Floats
    scales: Floats

    @classmethod
    def of(cls, parameters: HMMParameters[Any], data: Sequences) -> Self:
        from odeco.kernels.hmm import padded

        k = parameters.n_components
        transmat, transposed = np.zeros((2, padded(k), k))
        transmat[:k], transposed[:k] = parameters.transmat, parameters.transmat.T
        rows, scales = np.empty((0, k)), np.empty(0)
        if data.codes is not None:
            rows, scales = _likelihoods(parameters.emission, data.values)
            scales = scales if scales.any() else scales[:0]  # symbols have none: nothing to add up
        start = np.ascontiguousarray(parameters.startprob, dtype=np.float64)
        return cls(k, parameters.emission, start, transmat, transposed, np.ascontiguousarray(rows), scales)


@dataclass(frozen=True, eq=False)
class _Scratch:
    """What one thread writes and forgets; it is kept from pass to pass, because new memory takes long to come by."""

    alphas: Floats
    norms: Floats

    @classmethod
    def of(cls, model: _Model, length: int) -> Self:
        from odeco.kernels.hmm import LANES

        shape = length + 1, model.transmat.shape[0], LANES
        kept: Self | None = getattr(_room, "scratch", None)
        if kept is None or kept.alphas.shape != shape:
            kept = _room.scratch = cls(_aligned(*shape), _aligned(length, LANES))
        return kept


@dataclass(frozen=True, eq=False)
class _Messages:
    """Messages (tasks, kp, LANES) at the ends of the stretches: those used and those that came out."""

    k: int
    forward_used: Floats
    forward_out: Floats
    backward_used: Floats
    backward_out: Floats

    @classmethod
    def unknown(cls, n_tasks: int, model: _Model) -> Self:
        from odeco.kernels.hmm import LANES

        messages = np.zeros((4, n_tasks, model.transmat.shape[0], LANES))
        messages[:, :, : model.k] = 1.0 / model.k
        return cls(model.k, *messages)

    def agree(self, begins: NDArray[np.bool_], *, backward: bool) -> bool:
        """Whether every stretch used what its neighbour ended with; where a sequence begins, nothing is handed on."""
        inner = np.flatnonzero(~begins[1:])
        used, out = by_stretch(self.forward_used, self.k)[inner + 1], by_stretch(self.forward_out, self.k)[inner]
        ok = _close(used, out)
        if ok and backward:
            used, out = by_stretch(self.backward_used, self.k)[inner], by_stretch(self.backward_out, self.k)[inner + 1]
            ok = _close(used, out)
        return ok


def _aligned(*shape: int) -> Floats:
    """Zeros that begin with a cache line: vectors of eight numbers that lie on two of them take longer to read."""
    size = prod(shape)
    room = np.zeros(size + 8)
    skipped = -room.ctypes.data % 64 // room.itemsize
    return room[skipped : skipped + size].reshape(shape)


def by_stretch(messages: Floats, k: int) -> Floats:
    """Messages (tasks, kp, LANES) as one row for each stretch, in order."""
    return messages[:, :k].transpose(0, 2, 1).reshape(-1, k)


def _close(first: Floats, second: Floats) -> bool:
    larger = np.maximum(first, second)
    return bool((np.abs(first - second) <= _AGREE * larger + _NEGLIGIBLE).all())


@dataclass(eq=False)
class _Sums:
    """What one thread adds up; `rows` by distinct observation, or by step where it is shared by all threads."""

    log_likelihood: float
    start: Floats
    pairs: Floats
    rows: Floats
    emission: Statistics
    shared: bool

    @classmethod
    def zero(cls, model: _Model, per_step: Floats | None) -> Self:
        from odeco.kernels.hmm import LANES

        size = model.transmat.shape[0]
        rows = np.zeros((model.rows.shape[0], model.k)) if per_step is None else per_step
        return cls(0.0, np.zeros(model.k), _aligned(size, size, LANES), rows, (), per_step is not None)

    def add_statistics(self, more: Statistics) -> None:
        self.emission = tuple(a + b for a, b in zip(self.emission, more, strict=True)) if self.emission else more

    def add(self, other: _Sums) -> None:
        self.log_likelihood += other.log_likelihood
        self.start += other.start
        self.pairs += other.pairs
        self.add_statistics(other.emission)
        if not self.shared:
            self.rows += other.rows
