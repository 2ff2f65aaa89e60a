"""Parts of kernels are compiled only inside the kernels that call them."""

from __future__ import annotations

import numpy as np
import pytest

from sim.base.jit import JIT, _compile, part


@part
def _deepest(x, i):
    if x[i] < 0:
        raise ValueError("negative")
    return np.sqrt(x[i])


@part
def _between(x):
    total = 0.0
    for i in range(len(x)):
        total += _deepest(x, i)
    return total


@_compile  # and not kept on disk
def _kernel(x):
    return 2.0 * _between(x) + _deepest(x, 0)


def test_nested_parts_give_the_results_of_python() -> None:
    x = np.array([4.0, 9.0, 16.0])
    assert _kernel(x) == 2.0 * (2.0 + 3.0 + 4.0) + 2.0
    assert _kernel(x[:1]) == 6.0
    with pytest.raises(ValueError, match="negative"):
        _kernel(np.array([1.0, -1.0]))


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_no_machine_code_is_made_of_a_part() -> None:
    _kernel(np.array([4.0]))
    (compiled,) = _between.overloads.values()
    (kernel,) = _kernel.overloads.values()
    is_there = kernel.library._codegen._engine.is_symbol_defined
    assert is_there(kernel.fndesc.llvm_func_name)
    assert not is_there(compiled.fndesc.llvm_func_name)
