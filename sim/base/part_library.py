"""Compilation of kernel parts to LLVM code that is optimised once, in the kernel that calls them.

Numba optimises each called function together with its callees, and generates machine code that
Python could call. A part, which Python can't call, needs neither: it is linked into its caller and
optimised there. Without this it would be optimised again at each level of callers.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from functools import cache
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _NoEnvironment:
    """Stub for the object that tells machine code the address of its Python globals."""

    def set_env(self, name: str, env: object) -> None:
        """Do nothing."""


class _PartLibrary(JITCodeLibrary):
    """LLVM code of a part, linked with the code of its own parts."""

    @property
    def codegen(self) -> Any:
        """Stub that sets no environment: there is no machine code to have one."""
        return _NoEnvironment()

    def _optimize_final_module(self) -> None:
        """Do nothing: the kernel is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        """Finalize without generating machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a part into a `_PartLibrary`."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return bool(super().run_pass(state))


class PartCompiler(CompilerBase):
    """Compiler of parts."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's default pipeline with another lowering pass."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_PartLowering, NativeLowering)
        passes.passes = [p for p in passes.passes if p[0] is not NativeLowering]
        passes.finalize()
        return [passes]


@cache
def is_usable() -> bool:
    """Test with a small kernel that numba's internals still match this module.

    Numba gives no guarantee about its internals. If a version has changed them, parts compile the
    usual way: to the same results, in more time.
    """
    try:
        options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        add_one: Any = numba.njit(pipeline_class=PartCompiler, **options)(lambda x: x + 1)
        kernel: Any = numba.njit(lambda x: add_one(add_one(x)))
        return bool(kernel(1) == 3)
    except Exception:  # changed internals can raise anything
        return False
