"""Tables of arrays that kernels hand to each other by reference.

Numba passes every array of a tuple as seven to eleven numbers, and kernels that call
each other pass hundreds of them, which takes longer to compile than what they compute.
A table that is marked here is passed as the address of its arrays.

Fields are read as those of any named tuple. A table is not changed, returned or
unpacked in a kernel.
"""

# mypy: ignore-errors

from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    NativeValue,
    lower_builtin,
    models,
    register_model,
    type_callable,
    typeof_impl,
    unbox,
)

from marey.numerics.jit import TableStruct


class TableType(types.Type):
    """The type of a reference to a named tuple with fields of these types."""

    def __init__(self, table, members) -> None:
        self.table = table
        self.members = tuple(members)
        name = f"{table.__module__}.{table.__qualname__}"
        super().__init__(name=f"reference({name}({', '.join(map(str, members))}))")

    @property
    def key(self):
        """Tables of one class with fields of the same types have the same type."""
        return self.table, self.members


@register_model(TableType)
class TableModel(models.StructModel):
    """The address of the fields. It owns no array: who makes the table does."""

    def __init__(self, dmm, fe_type) -> None:
        fields = list(zip(fe_type.table._fields, fe_type.members, strict=True))
        super().__init__(dmm, fe_type, fields)
        self._struct = TableStruct([model.get_value_type() for model in self._models])

    def get_value_type(self):
        """Return the type of the address."""
        return self._struct.as_pointer()

    get_data_type = get_argument_type = get_return_type = get_value_type

    def _pass(self, builder, value):
        return value

    as_data = from_data = as_argument = from_argument = as_return = from_return = _pass

    def get(self, builder, val, pos):
        """Return a field."""
        return builder.load(cgutils.gep_inbounds(builder, val, 0, pos))

    def traverse(self, builder):
        """Return no members, because references to arrays are not counted."""
        return []

    def inner_models(self):
        """Return no models, for the same reason."""
        return []


def by_reference(table):
    """Let kernels have a named tuple by reference if Python calls them with it."""

    @typeof_impl.register(table)
    def find_type(value, context):
        members = [typeof_impl(field, context) for field in value]
        return None if None in members else TableType(table, members)

    return table


@infer_getattr
class _Fields(AttributeTemplate):
    key = TableType

    def generic_resolve(self, table, name):
        if name not in table.table._fields:
            return None
        return table.members[table.table._fields.index(name)]


@lower_getattr_generic(TableType)
def _lower_field(context, builder, table, value, name):
    place = table.table._fields.index(name)
    field = context.data_model_manager[table].get(builder, value, place)
    return impl_ret_borrowed(context, builder, table.members[place], field)


def _allocate(context, builder, table):
    """Return the address of a table without content."""
    return cgutils.alloca_once(builder, context.data_model_manager[table]._struct)


@unbox(TableType)
def _unbox_table(table, value, c):
    address = _allocate(c.context, c.builder, table)
    is_error = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    cleanups = []
    for place, member in enumerate(table.members):
        item = c.pyapi.tuple_getitem(value, place)
        field = cgutils.gep_inbounds(c.builder, address, 0, place)
        if isinstance(member, types.Array):
            failed = _unbox_array(item, field, c)
        else:
            native = c.unbox(member, item)
            c.builder.store(native.value, field)
            failed = native.is_error
            cleanups.append(_cleanup_of(member, native, c))
        failed = c.builder.or_(c.builder.load(is_error), failed)
        c.builder.store(failed, is_error)

    def cleanup() -> None:
        for end in cleanups:
            end()

    return NativeValue(address, c.builder.load(is_error), cleanup)


def _unbox_array(value, address, c):
    """Describe an array at an address; return whether that failed.

    The array belongs to the table, which the caller keeps, so no reference is counted.
    """
    describe = ir.FunctionType(cgutils.int32_t, [c.pyapi.pyobj, c.pyapi.voidptr])
    function = c.pyapi._get_function(describe, name="numba_adapt_ndarray")
    room = c.builder.bitcast(address, c.pyapi.voidptr)
    return cgutils.is_not_null(c.builder, c.builder.call(function, (value, room)))


def _cleanup_of(member, native, c):
    """Return what gives a field back when the kernel has ended."""

    def cleanup() -> None:
        if c.context.enable_nrt:
            c.context.nrt.decref(c.builder, member, native.value)
        if native.cleanup is not None:
            native.cleanup()

    return cleanup


def refer(table):
    """Return a reference to a named tuple, valid until the kernel that asks returns.

    Only for kernels that count no references to arrays (`jit.lean`), because nothing
    else keeps the arrays of the table.
    """
    return table


@type_callable(refer)
def _typed_reference(context):
    return lambda table: TableType(table.instance_class, tuple(table))


@lower_builtin(refer, types.BaseNamedTuple)
def _lower_reference(context, builder, signature, values):
    if context.enable_nrt:
        raise errors.LoweringError(
            "a kernel that counts references cannot make a table"
        )
    table = signature.return_type
    address = _allocate(context, builder, table)
    for place in range(len(table.members)):
        field = builder.extract_value(values[0], place)
        builder.store(field, cgutils.gep_inbounds(builder, address, 0, place))
    return address
