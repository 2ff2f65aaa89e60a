"""Compiler of the parts of kernels: a part is optimised once, in the kernel that calls it.

Numba optimises each function that another one calls, with all that it calls, and makes machine code
of it, which Python might call. Of a part, which Python can't call, neither is needed: what is
linked into its caller is optimised there, and was again and again, once for each level of callers.
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
    """Stands for what would tell machine code where its Python globals are."""

    def set_env(self, name: str, env: object) -> None:
        """Tell nobody."""


class _PartLibrary(JITCodeLibrary):
    """The code of a part, linked with that of its own parts."""

    @property
    def codegen(self) -> Any:
        """Return what sets environments; there is no machine code that has one."""
        return _NoEnvironment()

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a part into a library of its own kind."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return bool(super().run_pass(state))


class PartCompiler(CompilerBase):
    """Compiles a part."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's own pipeline, but for its lowering."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_PartLowering, NativeLowering)
        passes.passes = [p for p in passes.passes if p[0] is not NativeLowering]
        passes.finalize()
        return [passes]


@cache
def is_usable() -> bool:
    """Tell whether numba's inside is still as this module expects; compile a small kernel to see.

    Numba promises nothing of its inside. Where a version has changed it, parts compile the usual
    way: to the same results, in more time.
    """
    try:
        options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        add_one: Any = numba.njit(pipeline_class=PartCompiler, **options)(lambda x: x + 1)
        kernel: Any = numba.njit(lambda x: add_one(add_one(x)))
        return bool(kernel(1) == 3)
    except Exception:  # whatever a changed inside raises
        return False
