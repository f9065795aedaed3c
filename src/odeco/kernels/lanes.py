"""Products of small matrices whose entries are vectors of `LANES` numbers, written as vector instructions.

numba's compiler vectorizes long loops alone, and leaves blocks of eight numbers scalar: at the sizes of hidden Markov
models (k of 2 to 50) that costs a factor of four. So these two loops are given to LLVM as vector code. Both keep a
block of sums in registers: sizes are padded to multiples of `PAD`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 8
PAD = 4  # rows are processed this many at a time


def padded(k: int) -> int:
    """k rounded up to a multiple of `PAD`."""
    return -(-k // PAD) * PAD


class _Builder:
    """The few things that both products do, over LLVM's builder."""

    def __init__(self, context: Any, builder: Any, real: Any) -> None:
        self.builder = builder
        self.real = context.get_value_type(real)
        self.vector = ir.VectorType(self.real, LANES)
        self.size = context.get_value_type(types.intp)

    def integer(self, value: int) -> Any:
        return ir.Constant(self.size, value)

    def times(self, first: Any, second: Any) -> Any:
        return self.builder.mul(first, second)

    def plus(self, first: Any, second: Any) -> Any:
        return self.builder.add(first, second)

    def pointer(self, data: Any, vector_index: Any) -> Any:
        """Where vector number ``vector_index`` of an array begins."""
        address = self.builder.gep(data, [self.times(vector_index, self.integer(LANES))])
        return self.builder.bitcast(address, self.vector.as_pointer())

    def load(self, data: Any, vector_index: Any) -> Any:
        return self.builder.load(self.pointer(data, vector_index), align=self.alignment)

    def store(self, value: Any, data: Any, vector_index: Any) -> None:
        self.builder.store(value, self.pointer(data, vector_index), align=self.alignment)

    @property
    def alignment(self) -> int:
        return 4 if isinstance(self.real, ir.FloatType) else 8

    def everywhere(self, data: Any, index: Any) -> Any:
        """One number of an array in every lane."""
        number = self.builder.load(self.builder.gep(data, [index]))
        undefined = ir.Constant(self.vector, ir.Undefined)
        alone = self.builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(alone, undefined, mask)

    def variable(self, value: Any) -> Any:
        """A local variable; LLVM makes a register of it."""
        slot = cgutils.alloca_once(self.builder, self.vector)
        self.builder.store(value, slot)
        return slot

    def multiply_add(self, first: Any, second: Any, slot: Any) -> None:
        width = "f32" if isinstance(self.real, ir.FloatType) else "f64"
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(self.vector, [self.vector] * 3),
            f"llvm.fmuladd.v{LANES}{width}",
        )
        self.builder.store(self.builder.call(function, [first, second, self.builder.load(slot)]), slot)

    def add_maximum(self, first: Any, second: Any, slot: Any) -> None:
        total, best = self.builder.fadd(first, second), self.builder.load(slot)
        larger = self.builder.fcmp_ordered(">", total, best)
        self.builder.store(self.builder.select(larger, total, best), slot)


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    pairs = zip(signature.args, arguments, strict=True)
    return [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in pairs
    ]


def _row_sums(context: Any, builder: Any, signature: Any, arguments: Any, zero: float, add: Callable[..., None]) -> Any:
    """``out[j, :] = sum_i matrix[j, i] * message[i, :]`` for the sum and product that ``add`` stands for."""
    left, right, target = _arrays(context, builder, signature, arguments)
    b = _Builder(context, builder, signature.args[0].dtype)
    rows, columns = cgutils.unpack_tuple(builder, left.shape, 2)
    with cgutils.for_range_slice(builder, b.integer(0), rows, b.integer(PAD)) as (row, _):
        sums = [b.variable(ir.Constant(b.vector, [zero] * LANES)) for _ in range(PAD)]
        with cgutils.for_range(builder, columns) as loop:
            vector = b.load(right.data, loop.index)
            for r, slot in enumerate(sums):
                entry = b.plus(b.times(b.plus(row, b.integer(r)), columns), loop.index)
                add(b, b.everywhere(left.data, entry), vector, slot)
        for r, slot in enumerate(sums):
            b.store(builder.load(slot), target.data, b.plus(row, b.integer(r)))
    return context.get_dummy_value()


@intrinsic
def multiply_lanes(typing: Any, matrix: Any, message: Any, out: Any) -> tuple[Any, Callable[..., Any]]:
    """``out[j, :] = sum_i matrix[j, i] message[i, :]``.

    matrix (kp, k), message (at least k, LANES), out (kp, LANES) with kp a multiple of PAD, all C-contiguous.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _row_sums(context, builder, signature, arguments, 0.0, _Builder.multiply_add)

    return types.void(matrix, message, out), code


@intrinsic
def best_lanes(typing: Any, matrix: Any, scores: Any, out: Any) -> tuple[Any, Callable[..., Any]]:
    """``out[j, :] = max_i (matrix[j, i] + scores[i, :])``: the same in the algebra of maxima and sums."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _row_sums(context, builder, signature, arguments, float("-inf"), _Builder.add_maximum)

    return types.void(matrix, scores, out), code


@intrinsic
def add_outer_lanes(typing: Any, first: Any, second: Any, n_steps: Any, sums: Any) -> tuple[Any, Callable[..., Any]]:
    """``sums[i, j, :] += sum_t first[t, i, :] second[t, j, :]`` over the first ``n_steps`` steps.

    first, second (steps, kp, LANES), sums (kp, kp, LANES) with kp a multiple of PAD, all C-contiguous.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, _, target = _arrays(context, builder, signature, arguments)
        steps = context.cast(builder, arguments[2], signature.args[2], types.intp)
        b = _Builder(context, builder, signature.args[0].dtype)
        k = cgutils.unpack_tuple(builder, target.shape, 3)[0]
        with (
            cgutils.for_range_slice(builder, b.integer(0), k, b.integer(2)) as (i, _),
            cgutils.for_range_slice(builder, b.integer(0), k, b.integer(PAD)) as (j, _),
        ):
            cells = [
                (p, q, b.plus(b.times(b.plus(i, b.integer(p)), k), b.plus(j, b.integer(q))))
                for p in range(2)
                for q in range(PAD)
            ]
            slots = [b.variable(b.load(target.data, cell)) for _, _, cell in cells]
            with cgutils.for_range(builder, steps) as loop:
                base = b.times(loop.index, k)
                ours = [b.load(left.data, b.plus(base, b.plus(i, b.integer(p)))) for p in range(2)]
                theirs = [b.load(right.data, b.plus(base, b.plus(j, b.integer(q)))) for q in range(PAD)]
                for (p, q, _), slot in zip(cells, slots, strict=True):
                    b.multiply_add(ours[p], theirs[q], slot)
            for (_, _, cell), slot in zip(cells, slots, strict=True):
                b.store(builder.load(slot), target.data, cell)
        return context.get_dummy_value()

    return types.void(first, second, n_steps, sums), code


@intrinsic
def weigh_lanes(
    typing: Any, first: Any, second: Any, scale: Any, out: Any, sums: Any
) -> tuple[Any, Callable[..., Any]]:
    """``out[j, :] = first[j, :] second[j, :] scale[:]`` for all rows of ``out``, and their sum in ``sums`` (LANES,)."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, factor, target, total = _arrays(context, builder, signature, arguments)
        b = _Builder(context, builder, signature.args[0].dtype)
        rows = cgutils.unpack_tuple(builder, target.shape, 2)[0]
        scales = b.load(factor.data, b.integer(0))
        slot = b.variable(ir.Constant(b.vector, [0.0] * LANES))
        with cgutils.for_range(builder, rows) as loop:
            product = builder.fmul(b.load(left.data, loop.index), b.load(right.data, loop.index))
            product = builder.fmul(product, scales)
            b.store(product, target.data, loop.index)
            builder.store(builder.fadd(builder.load(slot), product), slot)
        b.store(builder.load(slot), total.data, b.integer(0))
        return context.get_dummy_value()

    return types.void(first, second, scale, out, sums), code
