"""Compiling functions that only compiled code calls: Numba also makes machine code of each of them.

It would never be run, since what calls them gets their intermediate code, and makes machine code of all.
This takes a quarter of the time of a first compilation. It uses internals of Numba, and therefore only those
versions for which it is tested: others compile as usual.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc, version_info
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

_TESTED = (0, 61) <= version_info[:2] <= (0, 68)


class InnerLibrary(JITCodeLibrary):
    """Optimised intermediate code of a function, to be linked into that of others."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """Lowering without machine code."""

    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function, and let others call it."""
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        state.flags.noalias = state.pipeline.separate
        super().run_pass(state)
        function, library = state.cr.fndesc, state.library
        # Its address is 0, as that of other functions without a wrapper for Python.
        name = function.qualname.split(".")[-1]
        known = _dynfunc.make_function(function.lookup_module(), name, "", 0, state.cr.env, (library,))
        state.targetctx.insert_user_function(known, function, [library])
        state["cr"] = state.cr._replace(cfunc=known)
        return True


class InnerCompiler(Compiler):
    """Numba's compiler without its last step, if its version is known."""

    #: Whether no array that is written overlaps with what is used of another one.
    separate = False

    def define_pipelines(self) -> list[Any]:
        """Return Numba's steps, with another lowering."""
        if not _TESTED:
            return super().define_pipelines()
        (steps,) = super().define_pipelines()
        steps.passes = [
            (InnerLowering if step is NativeLowering else step, text) for step, text in steps.passes
        ]
        steps.finalize()
        return [steps]


class RowCompiler(InnerCompiler):
    """The same for loops over rows, which need not compare addresses of rows before each loop."""

    separate = True
