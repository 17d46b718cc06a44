"""Numbers of several frames side by side, which one instruction of a CPU computes on.

A value of `Lanes` has one double per lane (SIMD); arithmetic, square roots and
comparisons act on all lanes at once. Kernels that read and write such values by index
compute on single numbers and on lanes alike, so that a formula is written once. What
decides differs by lane: `select` instead of a conditional expression, and `any_lane` or
`all_lanes` around a condition. Rare work is done lane by lane, on `lane_view`.

An array of lanes is an array of doubles whose last axis has `LANES` elements
(`as_lanes`); only compiled functions see it as one of lanes.
"""

# mypy: ignore-errors

import operator

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typeconv import Conversion
from numba.extending import (
    intrinsic,
    lower_builtin,
    lower_cast,
    models,
    register_model,
    type_callable,
)
from numba.np.arrayobj import make_array, populate_array

from marey.numerics.jit import FAST

LANES = 4
"""Frames side by side: the doubles of one register of AVX2."""

VECTOR = ir.VectorType(ir.DoubleType(), LANES)
MASK_VECTOR = ir.VectorType(ir.IntType(1), LANES)
INDEX = ir.IntType(32)
FLAGS = tuple(sorted(FAST))


class LanesType(types.Type):
    """One double per lane."""

    def __init__(self):
        super().__init__(name=f"Lanes({LANES})")

    def can_convert_from(self, typingctx, other):
        """Take a number as the same in all lanes."""
        return Conversion.safe if isinstance(other, types.Number) else None

    def unify(self, typingctx, other):
        """Let a variable that is a number first become one of lanes."""
        return self if isinstance(other, types.Number) else None


class MaskType(types.Type):
    """One condition per lane."""

    def __init__(self):
        super().__init__(name=f"Mask({LANES})")

    def can_convert_from(self, typingctx, other):
        """Take a condition as the same in all lanes."""
        return Conversion.safe if isinstance(other, types.Boolean) else None

    def unify(self, typingctx, other):
        """Let a condition on a number become one on lanes, as the number does."""
        return self if isinstance(other, types.Boolean) else None


Lanes, Mask = LanesType(), MaskType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, VECTOR)


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, MASK_VECTOR)


def _broadcast(builder, value):
    undefined = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(INDEX, 0))
    zeros = ir.Constant(ir.VectorType(INDEX, LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


def _to_lanes(context, builder, value, type_):
    if type_ == Lanes:
        return value
    return _broadcast(builder, context.cast(builder, value, type_, types.float64))


@lower_cast(types.Number, LanesType)
def _cast_number(context, builder, from_type, to_type, value):
    return _to_lanes(context, builder, value, from_type)


@lower_cast(types.Boolean, MaskType)
def _cast_condition(context, builder, from_type, to_type, value):
    number = builder.uitofp(value, ir.DoubleType())
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    return builder.fcmp_ordered("!=", _broadcast(builder, number), zero)


OPERAND_TYPES = (
    (LanesType, LanesType),
    (LanesType, types.Number),
    (types.Number, LanesType),
)


def _register_binary(function, result, compute):
    @type_callable(function)
    def type_binary(context):
        def typer(a, b):
            is_known = all(isinstance(x, (LanesType, types.Number)) for x in (a, b))
            return result if is_known and Lanes in (a, b) else None

        return typer

    def lower(context, builder, signature, values):
        pairs = zip(values, signature.args, strict=True)
        return compute(builder, *(_to_lanes(context, builder, *p) for p in pairs))

    for pair in OPERAND_TYPES:
        lower_builtin(function, *pair)(lower)


def _arithmetic(name):
    return lambda builder, a, b: getattr(builder, name)(a, b, flags=FLAGS)


def _comparison(sign):
    return lambda builder, a, b: builder.fcmp_ordered(sign, a, b)


def _extreme(sign):
    return lambda builder, a, b: builder.select(builder.fcmp_ordered(sign, a, b), a, b)


for _name, _instruction in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul")):
    for _function in (getattr(operator, _name), getattr(operator, f"i{_name}")):
        _register_binary(_function, Lanes, _arithmetic(_instruction))
for _function in (operator.truediv, operator.itruediv):
    _register_binary(_function, Lanes, _arithmetic("fdiv"))
SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=="}
for _name, _sign in SIGNS.items():
    _register_binary(getattr(operator, _name), Mask, _comparison(_sign))
_register_binary(max, Lanes, _extreme(">"))
_register_binary(min, Lanes, _extreme("<"))


def _register_unary(function, compute):
    @type_callable(function)
    def type_unary(context):
        return lambda a: Lanes if a == Lanes else None

    @lower_builtin(function, LanesType)
    def lower(context, builder, signature, values):
        return compute(builder, values[0])


def _call_llvm(name):
    def compute(builder, value):
        kind = ir.FunctionType(VECTOR, [VECTOR])
        full_name = f"llvm.{name}.v{LANES}f64"
        function = cgutils.get_or_insert_function(builder.module, kind, full_name)
        return builder.call(function, [value], fastmath=FLAGS)

    return compute


_register_unary(operator.neg, lambda builder, a: builder.fneg(a))
_register_unary(abs, _call_llvm("fabs"))
_register_unary(np.sqrt, _call_llvm("sqrt"))


for _function, _instruction in (
    (operator.and_, "and_"),
    (operator.iand, "and_"),
    (operator.or_, "or_"),
    (operator.ior, "or_"),
):

    @type_callable(_function)
    def _type_mask(context):
        return lambda a, b: Mask if a == b == Mask else None

    @lower_builtin(_function, MaskType, MaskType)
    def _lower_mask(context, builder, signature, values, name=_instruction):
        return getattr(builder, name)(*values)


def as_lanes(array):
    """Return an array of doubles, whose last axis are lanes, as one of lanes."""
    raise NotImplementedError("lanes exist in compiled functions only")


def lane_view(array, lane):
    """Return one lane of an array of lanes; an array of numbers as it is."""
    return array


def select(condition, a, b):
    """Return a where the condition holds, else b; both are computed."""
    return a if condition else b


def any_lane(condition):
    """Return whether a condition holds in any lane."""
    return condition


def all_lanes(condition):
    """Return whether a condition holds in all lanes."""
    return condition


def holds_in(condition, lane):
    """Return whether a condition holds in one lane."""
    return condition


def n_lanes(condition):
    """Return the number of lanes of a condition; 1 for a single one."""
    return 1


def _make_view(context, builder, array, result, start, n_axes, itemsize):
    """Return an array of another type that begins at `start`, without the last axes."""
    view = make_array(result)(context, builder)
    populate_array(
        view,
        data=start,
        shape=cgutils.unpack_tuple(builder, array.shape)[:n_axes],
        strides=cgutils.unpack_tuple(builder, array.strides)[:n_axes],
        itemsize=itemsize,
        meminfo=array.meminfo,
        parent=array.parent,
    )
    return impl_ret_borrowed(context, builder, result, view._getvalue())


def _compile_as_lanes(typingctx, array):
    n_axes = array.ndim - 1
    result = types.Array(Lanes, n_axes, "C", aligned=False)

    def generate(context, builder, signature, values):
        old = make_array(array)(context, builder, values[0])
        start = builder.bitcast(old.data, VECTOR.as_pointer())
        return _make_view(context, builder, old, result, start, n_axes, 8 * LANES)

    return result(array), generate


def _compile_lane_view(typingctx, array, lane):
    is_lanes, n_axes = array.dtype == Lanes, array.ndim
    result = types.Array(types.float64, n_axes, "A") if is_lanes else array

    def generate(context, builder, signature, values):
        if not is_lanes:
            return impl_ret_borrowed(context, builder, result, values[0])
        old = make_array(array)(context, builder, values[0])
        first = builder.bitcast(old.data, ir.DoubleType().as_pointer())
        start = builder.gep(first, [values[1]])
        return _make_view(context, builder, old, result, start, n_axes, 8)

    return result(array, types.intp), generate


def _compile_select(typingctx, condition, a, b):
    result = typingctx.unify_types(a, b) if condition != Mask else Lanes

    def generate(context, builder, signature, values):
        pairs = zip(values[1:], signature.args[1:], strict=True)
        a, b = (context.cast(builder, *pair, result) for pair in pairs)
        return builder.select(values[0], a, b)

    return result(condition, a, b), generate


def _bits(builder, mask):
    """Return a mask as the bits of an integer."""
    return builder.bitcast(mask, ir.IntType(LANES))


def _compile_condition(compute):
    """Return the intrinsic of a condition that is one of lanes or a single one."""

    def compile_condition(typingctx, condition):
        def generate(context, builder, signature, values):
            return compute(builder, values[0]) if condition == Mask else values[0]

        return types.boolean(condition), generate

    return compile_condition


def _compile_holds_in(typingctx, condition, lane):
    def generate(context, builder, signature, values):
        if condition != Mask:
            return values[0]
        return builder.extract_element(values[0], values[1])

    return types.boolean(condition, types.intp), generate


def _compile_n_lanes(typingctx, condition):
    count = LANES if condition == Mask else 1

    def generate(context, builder, signature, values):
        return context.get_constant(types.intp, count)

    return types.intp(condition), generate


if not config.DISABLE_JIT:
    as_lanes, lane_view = intrinsic(_compile_as_lanes), intrinsic(_compile_lane_view)
    select, n_lanes = intrinsic(_compile_select), intrinsic(_compile_n_lanes)
    holds_in = intrinsic(_compile_holds_in)
    _none, _every = ir.IntType(LANES)(0), ir.IntType(LANES)(-1)
    any_lane = intrinsic(
        _compile_condition(lambda b, mask: b.icmp_signed("!=", _bits(b, mask), _none))
    )
    all_lanes = intrinsic(
        _compile_condition(lambda b, mask: b.icmp_signed("==", _bits(b, mask), _every))
    )
