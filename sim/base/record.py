"""Records of arrays: one kernel argument that points to a table of addresses and extents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Record:
    """Arrays, and the table through which kernels access them: each one's address and extents."""

    def __init__(self, arrays: Iterable[NDArray[Any]]) -> None:
        self.arrays = tuple(arrays)
        words = [word for a in self.arrays for word in (a.__array_interface__["data"][0], *a.shape)]
        self.table = np.array(words, dtype=np.intp)
        self.address = self.table.ctypes.data


def field_arrays(
    fields: tuple[tuple[str, str, int], ...],
    inputs: Mapping[str, NDArray[Any]],
    state: Mapping[str, NDArray[Any]],
) -> list[NDArray[Any]]:
    """Return the array of each field: read-only of `inputs` for ``w_NAME``, else of `state`."""
    arrays = []
    for name, code, _ in fields:
        kind, _, key = name.partition("_")
        array = np.ascontiguousarray((inputs if kind == "w" else state)[key], dtype=code)
        array.setflags(write=kind == "state")
        arrays.append(array)
    return arrays


def record(
    name: str, fields: tuple[tuple[str, str, int], ...], read_only: tuple[str, ...]
) -> Callable[[Iterable[NDArray[Any]]], Record]:
    """Define a numba type for a record of arrays; return its class, called with the arrays.

    A kernel holds a bare pointer to the record's table, which never changes while the record
    lives (`Record` holds the arrays). So loads from the table are marked invariant and the
    arrays count no references: reading a field costs as little as reading a local, and can be
    hoisted out of any loop.
    """
    from numba.core import cgutils, types
    from numba.core.typing.templates import AttributeTemplate
    from numba.extending import (
        NativeValue,
        infer_getattr,
        lower_getattr_generic,
        models,
        register_model,
        typeof_impl,
        unbox,
    )
    from numba.np.arrayobj import populate_array
    from numba.np.numpy_support import from_dtype

    array_types = {
        field: types.Array(from_dtype(np.dtype(code)), ndim, "C", field.startswith(read_only))
        for field, code, ndim in fields
    }
    lengths = [1 + ndim for _, _, ndim in fields]
    offset = dict(zip(array_types, accumulate(lengths, initial=0), strict=False))
    cls = type(name, (types.Opaque,), {"__module__": __name__})
    globals()[name] = cls  # a cached signature is unpickled by module and name
    record_type = cls(name)
    packed = type(name + "Record", (Record,), {"__module__": __name__})
    register_model(cls)(models.OpaqueModel)
    typeof_impl.register(packed)(lambda value, context: record_type)

    @unbox(cls)  # type: ignore[untyped-decorator]
    def address_of(typ: Any, value: Any, c: Any) -> Any:
        address = c.pyapi.object_getattr_string(value, "address")
        pointer = c.pyapi.long_as_voidptr(address)
        c.pyapi.decref(address)
        return NativeValue(pointer)

    def type_of(template: Any, typ: Any, field: str) -> Any:
        return array_types.get(field)

    infer_getattr(
        type(name + "Fields", (AttributeTemplate,), {"key": cls, "generic_resolve": type_of})
    )

    @lower_getattr_generic(cls)  # type: ignore[untyped-decorator]
    def load(context: Any, builder: Any, typ: Any, pointer: Any, field: str) -> Any:
        array_type = array_types[field]
        table = builder.bitcast(pointer, cgutils.intp_t.as_pointer())

        def word(i: int, as_type: Any) -> Any:
            slot = cgutils.gep_inbounds(builder, table, offset[field] + i)
            loaded = builder.load(builder.bitcast(slot, as_type.as_pointer()))
            loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
            return loaded

        item = context.get_data_type(array_type.dtype)
        size = context.get_abi_sizeof(item)
        shape = [word(1 + i, cgutils.intp_t) for i in range(array_type.ndim)]
        strides = [cgutils.intp_t(size)]
        for extent in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], extent))
        array = context.make_array(array_type)(context, builder)
        populate_array(array, word(0, item.as_pointer()), shape, strides, size, meminfo=None)
        return array._getvalue()

    return packed
