"""Vector scans over rows of a matrix, eight doubles at a time.

The compiler does not vectorise conditional minima of doubles by itself, so these few loops are written in LLVM's vector
types; on machines with narrower registers LLVM splits them. Rows must be padded to a multiple of eight.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_INT64 = ir.IntType(64)
_INT32 = ir.IntType(32)
_ROWS = types.Array(types.float64, 2, "C")


def _row_pointer(context, builder, matrix, row):
    """Return a pointer to the first double of a row, and nothing else of the array: no view, no reference count."""
    array = context.make_array(_ROWS)(context, builder, matrix)
    columns = cgutils.unpack_tuple(builder, array.shape)[1]
    return builder.gep(array.data, [builder.mul(row, columns)])


def _load(builder, pointer, offset):
    here = builder.bitcast(builder.gep(pointer, [offset]), _VECTOR.as_pointer())
    return builder.load(here, align=8)


def _splat(builder, scalar):
    zero = ir.Constant(_INT32, 0)
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, zero)
    lanes = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), lanes)


def _minimum(builder, a, b):
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _across(builder, vector):
    """Return the least lane of a vector, halving it three times."""
    for width in (4, 2, 1):
        lanes = [(lane + width) % LANES for lane in range(LANES)]
        turned = builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_INT32, LANES), lanes))
        vector = _minimum(builder, turned, vector)
    return builder.extract_element(vector, ir.Constant(_INT32, 0))


@intrinsic
def scan_cuts3(typingctx, matrix, base, m, px, py, pz, rx, ry, rz):
    """Over points in rows base..base+2, return the least coordinate of those no worse than p in the other two."""
    triple = types.UniTuple(types.float64, 3)
    doubles = (types.float64,) * 6
    signature = triple(_ROWS, types.int64, types.int64, *doubles)

    def codegen(context, builder, sig, args):
        matrix, base, m = args[:3]
        rows = [_row_pointer(context, builder, matrix, builder.add(base, ir.Constant(_INT64, c))) for c in range(3)]
        p = [_splat(builder, value) for value in args[3:6]]
        infinity = ir.Constant(_VECTOR, [float("inf")] * LANES)
        least = [cgutils.alloca_once_value(builder, _splat(builder, value)) for value in args[6:9]]
        with cgutils.for_range_slice(builder, ir.Constant(_INT64, 0), m, ir.Constant(_INT64, LANES), intp=_INT64) as (
            j,
            _,
        ):
            values = [_load(builder, row, j) for row in rows]
            inside = [builder.fcmp_ordered("<=", value, limit) for value, limit in zip(values, p, strict=True)]
            for c in range(3):
                others = builder.and_(inside[(c + 1) % 3], inside[(c + 2) % 3])
                bound = builder.select(others, values[c], infinity)
                builder.store(_minimum(builder, bound, builder.load(least[c])), least[c])
        result = [_across(builder, builder.load(slot)) for slot in least]
        return context.make_tuple(builder, triple, result)

    return signature, codegen


def _bits(builder, mask):
    return builder.zext(builder.bitcast(mask, ir.IntType(LANES)), _INT64)


@intrinsic
def below3(typingctx, matrix, base, j, cx, cy, cz):
    """Return one bit for each of sixteen points from column j in rows base..base+2: all coordinates below c."""
    signature = types.int64(_ROWS, types.int64, types.int64, types.float64, types.float64, types.float64)

    def codegen(context, builder, sig, args):
        matrix, base, j = args[:3]
        bits = ir.Constant(_INT64, 0)
        corner = [_splat(builder, value) for value in args[3:]]
        for half in range(2):
            offset = builder.add(j, ir.Constant(_INT64, LANES * half))
            mask = None
            for c in range(3):
                row = _row_pointer(context, builder, matrix, builder.add(base, ir.Constant(_INT64, c)))
                less = builder.fcmp_ordered("<", _load(builder, row, offset), corner[c])
                mask = less if mask is None else builder.and_(mask, less)
            bits = builder.or_(bits, builder.shl(_bits(builder, mask), ir.Constant(_INT64, LANES * half)))
        return bits

    return signature, codegen


def _compare16(operator):
    def typed(typingctx, matrix, row, j, limit):
        signature = types.int64(_ROWS, types.int64, types.int64, types.float64)

        def codegen(context, builder, sig, args):
            matrix, row, j, limit = args
            pointer = _row_pointer(context, builder, matrix, row)
            bound = _splat(builder, limit)
            bits = ir.Constant(_INT64, 0)
            for half in range(2):
                offset = builder.add(j, ir.Constant(_INT64, LANES * half))
                mask = builder.fcmp_ordered(operator, _load(builder, pointer, offset), bound)
                bits = builder.or_(bits, builder.shl(_bits(builder, mask), ir.Constant(_INT64, LANES * half)))
            return bits

        return signature, codegen

    return typed


above16 = intrinsic(_compare16(">"))
below16 = intrinsic(_compare16("<"))


@intrinsic
def lowest_bit(typingctx, bits):
    """Return the index of the lowest set bit of a non-zero integer."""

    def codegen(context, builder, sig, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def highest_bit(typingctx, bits):
    """Return the index of the highest set bit of a non-zero integer."""

    def codegen(context, builder, sig, args):
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(_INT64, 63), zeros)

    return types.int64(types.int64), codegen
