"""A call by address: loops that are compiled once for all models reach the function of a model so."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def called(context, builder, signature, arguments):
    """Call the function at the first argument with the others; of an array, with its address and length."""
    values = []
    for kind, value in zip(signature.args[1:], arguments[1:], strict=True):
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            values += [array.data, array.nitems]
        else:
            values.append(value)
    function = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(builder.inttoptr(arguments[0], function.as_pointer()), values)
    return context.get_dummy_value()


@intrinsic
def call_tensor_row(typing_context, where, cells, smooth, top, bottom, per_x, per_y, p, q, n):
    """Call the function at `where`: void (real*, i64, real*, i64, u64, u64, real × 4, i64)."""
    return types.void(where, cells, smooth, top, bottom, per_x, per_y, p, q, n), called


@intrinsic
def call_volume_tensor_row(typing_context, where, cells, per_x, per_y, per_z, p, q, n):
    """Call the function at `where`: void (real*, i64, real × 5, i64)."""
    return types.void(where, cells, per_x, per_y, per_z, p, q, n), called
