"""Numba intrinsics of kernels: the bits of a double, the widest vectors, records by address."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.base.jit import JIT


def _bits_of(x: float) -> int:
    return int(np.float64(x).view(np.int64))


def _float_of(bits: int) -> float:
    return float(np.uint64(bits & (2**64 - 1)).view(np.float64))


def _widely() -> None:
    pass


bits_of: Any = _bits_of
"""Return the bits of a double as an int64."""
float_of: Any = _float_of
"""Return the double with the bits of an int64."""
widely: Any = _widely
"""Let the loops of the calling kernel use the widest vectors of the processor."""

if JIT:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def _bitcast(to: Any) -> Any:
        return lambda _, builder, __, args: builder.bitcast(args[0], to)

    def _compile_bits_of(context: Any, x: Any) -> Any:
        return types.int64(types.float64), _bitcast(ir.IntType(64))

    def _compile_float_of(context: Any, bits: Any) -> Any:
        return types.float64(types.int64), _bitcast(ir.DoubleType())

    def _compile_widely(context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            attributes = builder.function.attributes
            # its own `add` allows only a few attributes
            set.add(attributes, '"prefer-vector-width"="512"')
            return context.get_dummy_value()

        return types.void(), generate

    bits_of = intrinsic(_compile_bits_of)
    float_of = intrinsic(_compile_float_of)
    widely = intrinsic(_compile_widely)


def from_address(record_type: Any) -> Any:
    """Return the function of kernels that makes a record of its address (`sim.base.record`)."""

    def compile_cast(context: Any, address: Any) -> Any:
        def cast(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(record_type))

        return record_type(types.int64), cast

    return intrinsic(compile_cast)
