"""How kernels are compiled: the decorator, the cache folder, and what stands in without a JIT.

numba's own cache notices a change in the file of a function, but not in the files it calls into,
and reuses unchecked code when bounds checks are asked for later. So the cache folder's name
carries a digest of every kernel source, numba's version and the bounds-check flag. That is all
that what is in it goes by: copies of the project, wherever they lie, share it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
"""False when kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""

_PREFIX = "kernels-"


@cache
def digest() -> str:
    """Digest of all kernel sources, numba's version and the flags that change generated code."""
    h = hashlib.sha256()
    root = Path(__file__).resolve().parents[2]
    for path in sorted([Path(__file__), *root.glob("*/**/kernels/*.py")]):
        h.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    flags = (version("numba"), os.environ.get("NUMBA_BOUNDSCHECK", "0"), sys.version)
    h.update("\0".join(flags).encode())
    return h.hexdigest()[:16]


@cache
def cache_dir() -> Path:
    """Folder of compiled kernels: per user, named by `digest`.

    Its parent is NUMBA_CACHE_DIR, or XDG_CACHE_HOME, or ``~/.cache``, or, where that can't be
    written, the folder for temporary files. Give it to workers as NUMBA_CACHE_DIR.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given and Path(given).name == _PREFIX + digest():
        return Path(given)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    uid = os.getuid() if hasattr(os, "getuid") else 0
    for parent in (
        Path(given) if given else home / "cluster-sweep",
        Path(tempfile.gettempdir()) / f"cluster-sweep-{uid}",
    ):
        folder = parent / (_PREFIX + digest())
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="cluster-sweep-"))


os.environ["NUMBA_CACHE_DIR"] = str(cache_dir())
if JIT:
    import numba
    from numba.core.caching import _CacheLocator

    # somebody may have imported numba before us
    numba.config.CACHE_DIR = str(cache_dir())  # type: ignore[attr-defined]

    class KernelLocator(_CacheLocator):
        """Where numba keeps what it made of a kernel: in `cache_dir`, whatever its file's path."""

        def __init__(self, line: int) -> None:
            self._line = line

        def get_cache_path(self) -> str:
            """Return the folder."""
            return str(cache_dir())

        def get_source_stamp(self) -> str:
            """Return what changes with any kernel source, instead of the file's time."""
            return digest()

        def get_disambiguator(self) -> str:
            """Return what tells functions of one name in a module apart."""
            return str(self._line)

        @classmethod
        def from_function(cls, py_func: Callable[..., Any], py_file: str) -> KernelLocator:
            """Return the locator of one function."""
            return cls(py_func.__code__.co_firstlineno)


def jit(function: F) -> F:
    """Compile `function` at its first call, without the GIL, and keep the result on disk.

    Signatures are lazy on purpose: explicit ones refuse the read-only arrays that Ray hands out.
    No fast-math: results are the same bits with and without the JIT.
    """
    if not JIT:
        return function
    numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.KernelLocator"  # type: ignore[attr-defined]
    try:
        return _compile(function, cache=True)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = ""  # type: ignore[attr-defined]


def compiled(function: F, *args: Any) -> F:
    """Return a `jit` function for arguments of the types of `args`, and of no others.

    A call of it skips the look-up of its arguments' types, which takes longer than a short kernel.
    """
    if not JIT:
        return function
    entry = function.compile(tuple(numba.typeof(arg) for arg in args))  # type: ignore[attr-defined]
    return cast(F, entry)


def part(function: F) -> F:
    """Compile `function` as a part of the kernels that call it: Python itself can't.

    Without an entry from Python and a file of its own it costs much less to compile and to load.
    """
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: F) -> F:
    """Put the code of `function` into the kernel that calls it, and compile the two as one.

    For what is called from one place: it would only be optimised twice as a `part`.
    """
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, inline="always")


def _compile(function: F, **options: Any) -> F:
    if not JIT:
        return function
    njit: Any = numba.njit
    compiled = njit(nogil=True, error_model="numpy", **options)(function)
    template_of = compiled.get_call_template

    def widened(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return template_of(tuple(_wide(arg) for arg in args), kws)

    compiled.get_call_template = widened  # calls from other kernels
    return cast(F, compiled)


def _wide(arg: Any) -> Any:
    """Return the type that kernels pass `arg` as: one compilation serves every integer."""
    plain = numba.types.unliteral(arg)
    return numba.types.int64 if isinstance(plain, numba.types.Integer) else plain


class Record:
    """Arrays, and the table that kernels know them by: address and extents of each in turn."""

    def __init__(self, arrays: Iterable[NDArray[Any]]) -> None:
        self.arrays = tuple(arrays)
        words = [word for a in self.arrays for word in (a.ctypes.data, *a.shape)]
        self.table = np.array(words, dtype=np.intp)
        self.address = self.table.ctypes.data


def record(
    name: str, fields: tuple[tuple[str, str, int], ...], read_only: tuple[str, ...]
) -> Callable[[Iterable[NDArray[Any]]], Record]:
    """Define a type of record of arrays that kernels take; return what packs arrays into one.

    A kernel holds a bare pointer to the record's table, which never changes while the record
    lives (`Record` holds the arrays). So loads from the table are marked invariant and the
    arrays count no references: reading a field costs what reading a local costs, and it may be
    hoisted out of any loop.

    Parameters
    ----------
    name : str
        Name of the type.
    fields : tuple of (name, dtype code, ndim)
        Its fields in the order of packing, all C-contiguous arrays.
    read_only : tuple of str
        Prefixes of the fields whose arrays are read-only.
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
    place = dict(zip(array_types, accumulate(lengths, initial=0), strict=False))
    cls = type(name, (types.Opaque,), {"__module__": __name__})
    globals()[name] = cls  # a cached signature is found again by module and name
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
            at = cgutils.gep_inbounds(builder, table, place[field] + i)
            loaded = builder.load(builder.bitcast(at, as_type.as_pointer()))
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
