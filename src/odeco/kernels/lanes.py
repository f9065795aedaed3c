"""Products of small matrices whose entries are vectors of `LANES` numbers, written as vector instructions.

numba's compiler vectorizes long loops alone, and leaves blocks of eight numbers scalar: at the sizes of hidden Markov
models (k of 2 to 50) that costs a factor of four. So these loops are given to LLVM as vector code. They keep a block of
sums in registers: numbers of states are padded to multiples of `PAD`, kp = padded(k).

Arrays are C-contiguous with rows of `LANES` numbers; arguments named ``_at`` say at which row of an array to begin.
Views would do the same, at the price of counting references to them in every step.
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

    def multiple(self, number: Any, unit: int) -> Any:
        """The largest multiple of a power of 2 that is not above a number."""
        return self.builder.and_(number, self.integer(-unit))

    def everywhere(self, data: Any, index: Any) -> Any:
        """One number of an array in every lane."""
        return self.repeated(self.builder.load(self.builder.gep(data, [index])))

    def repeated(self, number: Any) -> Any:
        """A number in every lane."""
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

    def transposed(self, rows: list[Any]) -> list[Any]:
        """Four vectors of four numbers as the rows of a matrix; its columns."""
        pairs = [self._mixed(rows[i], rows[i + 1], mask) for i in (0, 2) for mask in ([0, 4, 2, 6], [1, 5, 3, 7])]
        return [self._mixed(pairs[i], pairs[i + 2], mask) for mask in ([0, 1, 4, 5], [2, 3, 6, 7]) for i in (0, 1)]

    def _mixed(self, first: Any, second: Any, mask: list[int]) -> Any:
        chosen = ir.Constant(ir.VectorType(ir.IntType(32), len(mask)), mask)
        return self.builder.shuffle_vector(first, second, chosen)

    def joined(self, low: Any, high: Any) -> Any:
        """Two vectors of four numbers as one of eight."""
        return self._mixed(low, high, list(range(LANES)))

    def halves(self, vector: Any) -> tuple[Any, Any]:
        """A vector of eight numbers as two of four."""
        half = LANES // 2
        return self._mixed(vector, vector, list(range(half))), self._mixed(vector, vector, list(range(half, LANES)))

    def four(self, data: Any, index: Any) -> Any:
        """Where the four numbers from number ``index`` of an array on are, as a vector."""
        address = self.builder.gep(data, [index])
        return self.builder.bitcast(address, ir.VectorType(self.real, LANES // 2).as_pointer())

    def add_maximum(self, first: Any, second: Any, slot: Any) -> None:
        total, best = self.builder.fadd(first, second), self.builder.load(slot)
        larger = self.builder.fcmp_ordered(">", total, best)
        self.builder.store(self.builder.select(larger, total, best), slot)


def _opened(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Arguments with arrays as structures and integers as sizes."""
    opened = []
    for kind, value in zip(signature.args, arguments, strict=True):
        if isinstance(kind, types.Array):
            opened.append(context.make_array(kind)(context, builder, value))
        else:
            opened.append(context.cast(builder, value, kind, types.intp))
    return opened


def _row_sums(context: Any, builder: Any, signature: Any, arguments: Any, zero: float, add: Callable[..., None]) -> Any:
    """``out[j, :] = sum_i matrix[j, i] * message[i, :]`` for the sum and product that ``add`` stands for."""
    left, right, right_at, target, target_at = _opened(context, builder, signature, arguments)
    b = _Builder(context, builder, signature.args[0].dtype)
    rows, columns = cgutils.unpack_tuple(builder, left.shape, 2)

    def block(row: Any, size: int) -> None:
        sums = [b.variable(ir.Constant(b.vector, [zero] * LANES)) for _ in range(size)]
        with cgutils.for_range(builder, columns) as loop:
            vector = b.load(right.data, b.plus(right_at, loop.index))
            for r, slot in enumerate(sums):
                entry = b.plus(b.times(b.plus(row, b.integer(r)), columns), loop.index)
                add(b, b.everywhere(left.data, entry), vector, slot)
        for r, slot in enumerate(sums):
            b.store(builder.load(slot), target.data, b.plus(target_at, b.plus(row, b.integer(r))))

    most = b.multiple(rows, 2 * PAD)  # a sum waits four cycles for its last product: eight of them hide that
    with cgutils.for_range_slice(builder, b.integer(0), most, b.integer(2 * PAD)) as (row, _):
        block(row, 2 * PAD)
    with cgutils.for_range_slice(builder, most, rows, b.integer(PAD)) as (row, _):
        block(row, PAD)
    return context.get_dummy_value()


@intrinsic
def multiply_lanes(
    typing: Any, matrix: Any, message: Any, message_at: Any, out: Any, out_at: Any
) -> tuple[Any, Callable[..., Any]]:
    """``out[out_at + j, :] = sum_i matrix[j, i] message[message_at + i, :]``, matrix (kp, k)."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _row_sums(context, builder, signature, arguments, 0.0, _Builder.multiply_add)

    return types.void(matrix, message, message_at, out, out_at), code


@intrinsic
def best_lanes(
    typing: Any, matrix: Any, scores: Any, scores_at: Any, out: Any, out_at: Any
) -> tuple[Any, Callable[..., Any]]:
    """``out[out_at + j, :] = max_i (matrix[j, i] + scores[scores_at + i, :])``: maxima for sums, sums for products."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _row_sums(context, builder, signature, arguments, float("-inf"), _Builder.add_maximum)

    return types.void(matrix, scores, scores_at, out, out_at), code


@intrinsic
def add_outer_lanes(
    typing: Any, first: Any, first_at: Any, second: Any, second_at: Any, n_steps: Any, sums: Any
) -> tuple[Any, Callable[..., Any]]:
    """``sums[i, j, :] += sum_t first[first_at + t kp + i, :] second[second_at + t kp + j, :]``, t below n_steps."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, left_at, right, right_at, steps, target = _opened(context, builder, signature, arguments)
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
                here, there = b.plus(b.plus(left_at, base), i), b.plus(b.plus(right_at, base), j)
                ours = [b.load(left.data, b.plus(here, b.integer(p))) for p in range(2)]
                theirs = [b.load(right.data, b.plus(there, b.integer(q))) for q in range(PAD)]
                for (p, q, _), slot in zip(cells, slots, strict=True):
                    b.multiply_add(ours[p], theirs[q], slot)
            for (_, _, cell), slot in zip(cells, slots, strict=True):
                b.store(builder.load(slot), target.data, cell)
        return context.get_dummy_value()

    return types.void(first, first_at, second, second_at, n_steps, sums), code


@intrinsic
def weigh_lanes(
    typing: Any, n_rows: Any, first: Any, first_at: Any, second: Any, second_at: Any, scale: Any, scale_at: Any,
    out: Any, out_at: Any, sums: Any,
) -> tuple[Any, Callable[..., Any]]:  # fmt: skip
    """``out[out_at + j, :] = first[first_at + j, :] second[second_at + j, :] scale[scale_at, :]``; sums in ``sums``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        opened = _opened(context, builder, signature, arguments)
        rows, left, left_at, right, right_at, factor, factor_at, target, target_at, total = opened
        b = _Builder(context, builder, signature.args[1].dtype)
        scales = b.load(factor.data, factor_at)
        slots = [b.variable(ir.Constant(b.vector, [0.0] * LANES)) for _ in range(PAD)]

        def weigh(row: Any, slot: Any) -> None:
            ours, theirs = b.load(left.data, b.plus(left_at, row)), b.load(right.data, b.plus(right_at, row))
            product = builder.fmul(builder.fmul(ours, theirs), scales)
            b.store(product, target.data, b.plus(target_at, row))
            builder.store(builder.fadd(builder.load(slot), product), slot)

        whole = b.multiple(rows, PAD)
        with cgutils.for_range_slice(builder, b.integer(0), whole, b.integer(PAD)) as (row, _):
            for r, slot in enumerate(slots):
                weigh(b.plus(row, b.integer(r)), slot)
        with cgutils.for_range_slice(builder, whole, rows, b.integer(1)) as (row, _):
            weigh(row, slots[0])
        first_two, last_two = (builder.fadd(builder.load(slots[i]), builder.load(slots[i + 1])) for i in (0, 2))
        b.store(builder.fadd(first_two, last_two), total.data, b.integer(0))
        return context.get_dummy_value()

    return types.void(n_rows, first, first_at, second, second_at, scale, scale_at, out, out_at, sums), code


@intrinsic
def invert_lanes(typing: Any, values: Any, out: Any, out_at: Any) -> tuple[Any, Callable[..., Any]]:
    """``out[out_at, :] = 1 / values[0, :]``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target, target_at = _opened(context, builder, signature, arguments)
        b = _Builder(context, builder, signature.args[0].dtype)
        ones = ir.Constant(b.vector, [1.0] * LANES)
        b.store(builder.fdiv(ones, b.load(source.data, b.integer(0))), target.data, target_at)
        return context.get_dummy_value()

    return types.void(values, out, out_at), code


@intrinsic
def read_lanes(typing: Any, values: Any, position: Any, stride: Any, out: Any) -> tuple[Any, Callable[..., Any]]:
    """``out[s] = values[position + s stride]``, integers that are not negative; returns their sum."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, place, step, target = _opened(context, builder, signature, arguments)
        size, total = context.get_value_type(types.intp), None
        for lane in range(LANES):
            number = builder.load(builder.gep(source.data, [place]))
            number = number if number.type == size else builder.zext(number, size)
            builder.store(number, builder.gep(target.data, [ir.Constant(size, lane)]))
            total = number if total is None else builder.add(total, number)
            place = builder.add(place, step)
        return total

    return types.intp(values, position, stride, out), code


@intrinsic
def any_outside(typing: Any, values: Any, low: Any, high: Any) -> tuple[Any, Callable[..., Any]]:
    """Whether some of ``values[0, :]`` is not between ``low`` and ``high``, or not a number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, *bounds = arguments
        source = context.make_array(signature.args[0])(context, builder, array)
        b = _Builder(context, builder, signature.args[0].dtype)
        vector = b.load(source.data, b.integer(0))
        least, most = (b.repeated(bound) for bound in bounds)
        above, below = builder.fcmp_ordered(">", vector, least), builder.fcmp_ordered("<", vector, most)
        flags = builder.bitcast(builder.and_(above, below), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", flags, ir.Constant(flags.type, 2**LANES - 1))

    return types.boolean(values, low, high), code


@intrinsic
def gather_lanes(typing: Any, rows: Any, chosen: Any, out: Any) -> tuple[Any, Callable[..., Any]]:
    """``out[j, s] = rows[chosen[s], j]``: the lanes are put together in a register.

    Written number by number, they could not be read as a vector before all of them had left the store buffer. Four
    columns at a time are read as rows and transposed.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, places, target = _opened(context, builder, signature, arguments)
        b = _Builder(context, builder, signature.args[0].dtype)
        columns, starts = _places(b, source, places)
        whole = b.multiple(columns, PAD)
        with cgutils.for_range_slice(builder, b.integer(0), whole, b.integer(PAD)) as (j, _):
            read = [builder.load(b.four(source.data, b.plus(start, j)), align=b.alignment) for start in starts]
            low, high = b.transposed(read[:PAD]), b.transposed(read[PAD:])
            for c in range(PAD):
                b.store(b.joined(low[c], high[c]), target.data, b.plus(j, b.integer(c)))
        with cgutils.for_range_slice(builder, whole, columns, b.integer(1)) as (j, _):
            vector = ir.Constant(b.vector, ir.Undefined)
            for lane, start in enumerate(starts):
                number = builder.load(builder.gep(source.data, [b.plus(start, j)]))
                vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), lane))
            b.store(vector, target.data, j)
        return context.get_dummy_value()

    return types.void(rows, chosen, out), code


@intrinsic
def scatter_lanes(typing: Any, message: Any, chosen: Any, sums: Any) -> tuple[Any, Callable[..., Any]]:
    """``sums[chosen[s], j] += message[j, s]``, lane by lane: two of them may have chosen the same row."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, places, target = _opened(context, builder, signature, arguments)
        b = _Builder(context, builder, signature.args[0].dtype)
        columns, starts = _places(b, target, places)
        whole = b.multiple(columns, PAD)
        with cgutils.for_range_slice(builder, b.integer(0), whole, b.integer(PAD)) as (j, _):
            halves = [b.halves(b.load(source.data, b.plus(j, b.integer(c)))) for c in range(PAD)]
            lanes = b.transposed([low for low, _ in halves]) + b.transposed([high for _, high in halves])
            for start, lane in zip(starts, lanes, strict=True):
                place = b.four(target.data, b.plus(start, j))
                total = builder.fadd(builder.load(place, align=b.alignment), lane)
                builder.store(total, place, align=b.alignment)
        with cgutils.for_range_slice(builder, whole, columns, b.integer(1)) as (j, _):
            vector = b.load(source.data, j)
            for lane, start in enumerate(starts):
                number = builder.extract_element(vector, ir.Constant(ir.IntType(32), lane))
                place = builder.gep(target.data, [b.plus(start, j)])
                builder.store(builder.fadd(builder.load(place), number), place)
        return context.get_dummy_value()

    return types.void(message, chosen, sums), code


def _places(b: _Builder, table: Any, chosen: Any) -> tuple[Any, list[Any]]:
    """Number of columns of a table, and where its chosen rows begin, one for each lane."""
    builder = b.builder
    columns = cgutils.unpack_tuple(builder, table.shape, 2)[1]
    rows = [builder.load(builder.gep(chosen.data, [b.integer(lane)])) for lane in range(LANES)]
    return columns, [b.times(row, columns) for row in rows]
