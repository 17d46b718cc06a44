"""Numbers side by side: a type of the compiler that holds one number per lane.

Kernels that are written for single numbers compile for lanes as well, as long as they
do not branch on them: `select_positive` takes the place of a branch. A register of a
CPU has four doubles (AVX2) or eight (AVX-512). Without the compiler, lanes are the last
axis of an array.
"""

# mypy: ignore-errors

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_untracked
from numba.extending import (
    intrinsic,
    lower_builtin,
    models,
    overload,
    register_model,
    type_callable,
)

from marey.numerics.jit import FAST

DOUBLE = np.dtype(np.float64).itemsize

REGISTER_BYTES = 32
"""A register of AVX2. With twice as many, numbers of a frame do not fit into the
registers, and steps took 1.4 times as long per frame (AMD Zen 3)."""

LANES = REGISTER_BYTES // DOUBLE
"""Number of lanes."""

CACHE_LINE_BYTES = 64
"""A line of the CPU's memory, which a vector does not cross."""

VECTOR = ir.VectorType(ir.DoubleType(), LANES)


class LanesType(types.Type):
    """The type of `LANES` doubles side by side."""

    def __init__(self) -> None:
        super().__init__(name=f"float64x{LANES}")


lanes = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """Held in registers as one vector of LLVM."""

    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, VECTOR)


def aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros of this shape, with lanes as a last axis, for `as_lanes`."""
    count = int(np.prod(shape)) * LANES
    raw = np.zeros(count + CACHE_LINE_BYTES // DOUBLE)
    skip = -raw.ctypes.data % CACHE_LINE_BYTES // DOUBLE
    return raw[skip : skip + count].reshape(*shape, LANES)


def _as_vector(context, builder, value, kind):
    """Return a value as a vector; a single number is the same in all lanes."""
    if isinstance(kind, LanesType):
        return value
    single = context.cast(builder, value, kind, types.float64)
    empty = ir.Constant(VECTOR, ir.Undefined)
    index = context.get_value_type(types.int32)
    first = ir.Constant(index, 0)
    mask = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
    return builder.shuffle_vector(
        builder.insert_element(empty, single, first), empty, mask
    )


def _is_number(kind) -> bool:
    return isinstance(kind, LanesType | types.Number)


def _define_operator(function, method) -> None:
    """Let an operator of Python act on lanes, and on lanes and single numbers."""

    @type_callable(function)
    def typed(context):
        def of(a, b):
            if lanes in (a, b) and _is_number(a) and _is_number(b):
                return lanes
            return None

        return of

    def lower(context, builder, signature, values):
        a, b = (
            _as_vector(context, builder, *one)
            for one in zip(values, signature.args, strict=True)
        )
        result = getattr(builder, method)(a, b, flags=tuple(FAST))
        return impl_ret_untracked(context, builder, signature.return_type, result)

    single = types.Number
    for kinds in ((LanesType, LanesType), (LanesType, single), (single, LanesType)):
        lower_builtin(function, *kinds)(lower)


for _name, _method in (
    ("add", "fadd"),
    ("sub", "fsub"),
    ("mul", "fmul"),
    ("truediv", "fdiv"),
):
    _define_operator(getattr(operator, _name), _method)
    _define_operator(getattr(operator, f"i{_name}"), _method)


@type_callable(operator.neg)
def _typed_negative(context):
    def of(a):
        return lanes if isinstance(a, LanesType) else None

    return of


@lower_builtin(operator.neg, LanesType)
def _lower_negative(context, builder, signature, values):
    return builder.fneg(values[0], flags=tuple(FAST))


def _of_vectors(name, builder, *values):
    """Return the result of an intrinsic function of LLVM on vectors."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * len(values))
    function = cgutils.get_or_insert_function(
        builder.module, kind, f"llvm.{name}.v{LANES}f64"
    )
    return builder.call(function, values)


@intrinsic
def _sqrt(typing, x):
    def lower(context, builder, signature, values):
        return _of_vectors("sqrt", builder, *values)

    return lanes(x), lower


@overload(np.sqrt)
def _overload_sqrt(x):
    if isinstance(x, LanesType):
        return lambda x: _sqrt(x)
    return None


@intrinsic
def _sin(typing, x):
    def lower(context, builder, signature, values):
        return _of_vectors("sin", builder, *values)

    return lanes(x), lower


@overload(np.sin)
def _overload_sin(x):
    if isinstance(x, LanesType):
        return lambda x: _sin(x)
    return None


@intrinsic
def _select_lanes(typing, x, a, b):
    def lower(context, builder, signature, values):
        x, a, b = (
            _as_vector(context, builder, *one)
            for one in zip(values, signature.args, strict=True)
        )
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        return builder.select(builder.fcmp_ordered(">", x, zero), a, b)

    return lanes(x, a, b), lower


def select_positive(x, a, b):
    """Return a where x is positive, else b; also where x is NaN."""
    return np.where(x > 0.0, a, b)


@overload(select_positive)
def _overload_select(x, a, b):
    if LanesType in (type(x), type(a), type(b)):
        return lambda x, a, b: _select_lanes(x, a, b)
    return lambda x, a, b: a if x > 0.0 else b


@intrinsic
def _any_positive_lane(typing, x):
    def lower(context, builder, signature, values):
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        bits = builder.fcmp_ordered(">", values[0], zero)
        number = builder.bitcast(bits, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", number, ir.Constant(number.type, 0))

    return types.boolean(x), lower


def any_positive(x):
    """Return whether a number is positive in any lane."""
    return np.any(x > 0.0)


@overload(any_positive)
def _overload_any(x):
    if isinstance(x, LanesType):
        return lambda x: _any_positive_lane(x)
    return lambda x: x > 0.0


@intrinsic
def keep_apart(typing):
    """Keep the compiler from copying the kernel that calls this into its callers.

    For long kernels that are called rarely, beside a loop that has to be fast.
    """

    def lower(context, builder, signature, values):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), lower


@intrinsic
def _spread(typing, x):
    def lower(context, builder, signature, values):
        return _as_vector(context, builder, values[0], signature.args[0])

    return lanes(x), lower


def spread(x):
    """Return a single number in all lanes."""
    return np.full(LANES, x)


@overload(spread)
def _overload_spread(x):
    return lambda x: _spread(x)


def as_lanes(array):
    """Return an array of doubles as one of lanes, without its last axis.

    The last axis has `LANES` elements; the array is C-contiguous and aligned, as those
    are that kernels allocate. Changes of either show in the other.
    """
    return array


@type_callable(as_lanes)
def _typed_as_lanes(context):
    return lambda array: types.Array(lanes, array.ndim - 1, "C")


@lower_builtin(as_lanes, types.Array)
def _lower_as_lanes(context, builder, signature, values):
    # Only compiling needs it; importing it takes as long as loading ten kernels.
    from numba.np.arrayobj import populate_array

    array, kind = signature.args[0], signature.return_type
    source = context.make_array(array)(context, builder, values[0])
    result = context.make_array(kind)(context, builder)
    shape = cgutils.unpack_tuple(builder, source.shape)[:-1]
    strides = cgutils.unpack_tuple(builder, source.strides)[:-1]
    populate_array(
        result,
        data=builder.bitcast(source.data, VECTOR.as_pointer()),
        shape=shape,
        strides=strides,
        itemsize=context.get_constant(types.intp, 8 * LANES),
        meminfo=source.meminfo,
        parent=source.parent,
    )
    if context.enable_nrt:
        context.nrt.incref(builder, kind, result._getvalue())
    return result._getvalue()
