"""A call by address: loops that are compiled once for all models reach the function of a model so."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def call_tensor_row(typing_context, where, cells, smooth, top, bottom, per_x, per_y, p, q, n):
    """Call the function at `where`: void (real*, real*, u64, u64, real, real, real, real, i64)."""
    signature = types.void(where, cells, smooth, top, bottom, per_x, per_y, p, q, n)

    def build(context, builder, signature, arguments):
        values = list(arguments[1:])
        for position in (0, 1):
            kind = signature.args[1 + position]
            values[position] = context.make_array(kind)(context, builder, values[position]).data
        function = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), values)
        return context.get_dummy_value()

    return signature, build
