"""Makes the arrays of the kernel's state as its one table of fields says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.engine.kernels.fields import FIELDS
from sim.engine.kernels.state import READ_ONLY


def allocate(
    sizes: Mapping[str, int], there: Collection[str], given: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return all fields in their order: those that are given, and the others as they begin."""
    fields, left = {}, set(given)
    for name, code, dims, fill in FIELDS:
        shape = [_extent(dim.strip(), sizes, there) for dim in dims.split(",")]
        if fill is not None:
            fields[name] = np.full(shape, fill, dtype=code)  # type: ignore[arg-type]  # none is *
            continue
        if name not in given:
            raise ValueError(f"nobody gave the field {name}")
        left.remove(name)
        array = given[name]
        if any(n not in (have, None) for n, have in zip(shape, array.shape, strict=False)):
            raise ValueError(f"{name} has shape {array.shape}; its table says {dims}: {shape}")
        fields[name] = _frozen(array) if name.startswith(READ_ONLY) else array
    if left:
        raise ValueError(f"given, but begun by the table or no field at all: {sorted(left)}")
    return fields


def _extent(dim: str, sizes: Mapping[str, int], there: Collection[str]) -> int | None:
    """Return the length of one axis, None for any."""
    if dim == "*":
        return None
    count, _, condition = dim.partition(":")
    if condition and condition not in there:
        return 1
    name, _, more = count.partition("+")
    return sizes[name] + (sizes[more] if more in sizes else int(more or 0))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view
