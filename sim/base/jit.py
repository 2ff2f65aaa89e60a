"""JIT compilation of kernels: decorators, specialised variants, and a plain-Python mode.

A kernel is written once, with everything that any run may need. An optional part of it is a
`Feature`; `specialised` binds each feature to True or False before the kernel is compiled. Code
behind an ``if`` that can't be true then costs no time to compile and no time to run.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

from sim.base.kernel_cache import (
    CHECKED,
    cache_dir,
    exclusive_lock,
    file_stem,
    is_intact,
    module_folder,
    shipped_folder,
)

F = TypeVar("F", bound=Callable[..., Any])

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
"""False when kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""

MODULES_FOUND = ()
"""Packages whose modules are imported by name here: none but those of `late` kernels, on which
`sim.base.sources` knows what depends."""

TESTED_NUMBA = ("0.68.",)
"""Prefixes of the numba versions whose internals `sim.base.part_library` is known to match."""

_LOG = logging.getLogger("sim.compiling")  # on standard error, unless configured otherwise

os.environ["NUMBA_CACHE_DIR"] = str(cache_dir())
if JIT:
    import numba
    from numba.core import event

    from sim.base.numba_cache import KernelCache

    try:
        from sim.base import part_library
    except (ImportError, AttributeError):  # a numba with other internals
        part_library = None  # type: ignore[assignment]

    # numba may have been imported before this module
    numba.config.CACHE_DIR = str(cache_dir())  # type: ignore[attr-defined]

    class _CompileListener(event.Listener):
        """Log a message when a kernel has to be compiled."""

        def __init__(self, text: str, cache: KernelCache) -> None:
            self._text = text
            self._cache = cache

        def on_start(self, event: Any) -> None:
            """Log it once, unless the cache has already logged a damaged file."""
            if self._text and not self._cache.was_damaged:
                _LOG.warning(self._text)
            self._text = ""

        def on_end(self, event: Any) -> None:
            """Do nothing."""


def jit(function: F) -> F:
    """Compile `function` at its first call, without the GIL, and cache the result on disk.

    Signatures are lazy on purpose: explicit ones refuse the read-only arrays that Ray hands out.
    No fast-math: results are the same bits with and without the JIT.
    """
    return _compile(function, cache=True)


def part(function: F) -> F:
    """Compile `function` as a part of the kernels that call it; Python can't call it.

    Without an entry point from Python, a cache file and machine code of its own it costs much less
    to compile and to load (`sim.base.part_library`).
    """
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: F) -> F:
    """Compile `function`, which has one call site, as a `part` that LLVM may inline there.

    Numba's own inlining takes as long again as all of LLVM, for no faster kernel.
    """
    return part(function)


class Feature(str):
    """A name that `specialised` binds to True or False."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Raise TypeError: the feature is not bound."""
        raise TypeError(f"{self} is True or False only in a variant; see `specialised`")


class Late(NamedTuple):
    """A function of another module, which `specialised` imports only for variants that need it."""

    name: str  # dotted
    feature: Feature


def late(name: str, feature: Feature) -> Any:
    """Stand for the kernel of a dotted name, which is called behind ``if feature:`` alone.

    Cells that can't have the feature do not depend on its module (`sim.base.sources`).
    """
    return Late(name, feature)


@cache
def specialised(kernel: F, features: frozenset[str], *, interpreted: bool = False) -> F:
    """Return the variant of a `jit` function with exactly these `features`.

    It is a copy, and so is every function that it calls: the same code with other globals, in which
    the names of functions refer to the copies and the names of features to True or False. Each copy
    has a name of its own: numba links by this name, and by a number that another process may give
    to another variant. An `interpreted` variant is plain Python, with the JIT, too.
    """
    modules: dict[str, dict[str, Any]] = {}
    copies: dict[str, Any] = {}

    def copy(kernel: Any) -> Any:
        function = getattr(kernel, "py_func", kernel)
        key = f"{function.__module__}.{function.__qualname__}"
        if key in copies:
            return copies[key]
        names = modules.setdefault(function.__module__, dict(function.__globals__))
        bound = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        bound.__qualname__ = _variant_name(function, features)
        bound.features = features  # type: ignore[attr-defined]
        options = function.kernel_options
        copies[key] = copied = bound if interpreted else _compile(bound, **options)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, Late):
                names[name] = copy(_load(value)) if value.feature in features else None
            elif isinstance(value, Feature):
                names[name] = value in features
            elif hasattr(getattr(value, "py_func", value), "kernel_options"):
                names[name] = copy(value)
        return copied

    return cast(F, copy(kernel))


def _load(kernel: Late) -> Any:
    module, _, name = kernel.name.rpartition(".")
    return getattr(import_module(module), name)


def compiled(function: F, *args: Any, message: str = "") -> F:
    """Return a `jit` function specialised for arguments of exactly the types of `args`.

    A call of it skips the look-up of its arguments' types, which takes longer than a short kernel.
    If it is not cached on disk, it is compiled now, after logging `message`.
    """
    if not JIT:
        return function
    types = tuple(numba.typeof(arg) for arg in args)
    kernel: Any = function
    with event.install_listener("numba:compile", _CompileListener(message, kernel._cache)):
        return cast(F, kernel.compile(types))


def is_cached(kernel: Callable[..., Any], features: frozenset[str]) -> bool:
    """Check that the variant of a kernel with `features` is on this machine, undamaged."""
    function = getattr(kernel, "py_func", kernel)
    begin = file_stem(function.__module__, _variant_name(function, features), features)
    folders = (module_folder(function.__module__), shipped_folder(function.__module__))
    files = (file for folder in folders for file in folder.glob(f"{begin}.*.nbc"))
    return not JIT or any(map(is_intact, files))


def _variant_name(function: Callable[..., Any], features: Iterable[str]) -> str:
    variant = hashlib.sha256("-".join(sorted(features)).encode()).hexdigest()[:8]
    return f"{function.__qualname__}_{variant}"


def _compile(function: F, **options: Any) -> F:
    function.kernel_options = dict(options)  # type: ignore[attr-defined]
    if not JIT:
        return function
    if "no_cpython_wrapper" in options and _parts_are_linked():
        options = options | {"pipeline_class": part_library.PartCompiler}
    njit: Any = numba.njit
    is_cached = options.pop("cache", False)
    dispatcher = njit(nogil=True, error_model="numpy", boundscheck=CHECKED, **options)(function)
    get_template = dispatcher.get_call_template

    def get_widened_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return get_template(tuple(_widen(arg) for arg in args), kws)

    dispatcher.get_call_template = get_widened_template  # calls from other kernels
    if is_cached:
        dispatcher._cache = KernelCache(function)
        _lock_compilation(dispatcher, function)
    return cast(F, dispatcher)


@cache
def _parts_are_linked() -> bool:
    """Check that `sim.base.part_library` can compile parts with the installed numba.

    Versions that passed all tests are trusted; any other is tried, which takes 0.3 s.
    """
    if part_library is None or os.environ.get("SIM_PLAIN_PARTS"):
        return False
    return numba.__version__.startswith(TESTED_NUMBA) or part_library.is_usable()


def _lock_compilation(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Wait for another process that compiles the same kernel, and load its result."""
    compile_now = dispatcher.compile
    lock = f"{module_folder(function.__module__).name}/{function.__qualname__}"

    def compile_locked(sig: Any) -> Any:
        _defer_blas()
        with exclusive_lock(lock):
            return compile_now(sig)

    dispatcher.compile = compile_locked


@cache
def _defer_blas() -> None:
    """Leave out SciPy, which numba imports to find a BLAS: a third of a first answer.

    No kernel uses one. Other code that does still works: numba looks again before it compiles it.
    """
    from numba.np import linalg

    ensure_blas = getattr(linalg, "ensure_blas", None)
    if ensure_blas is None:  # a numba with other internals
        return
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = ensure_blas


def _widen(arg: Any) -> Any:
    """Return the type by which kernels pass `arg`: one compilation serves every integer."""
    plain = numba.types.unliteral(arg)
    return numba.types.int64 if isinstance(plain, numba.types.Integer) else plain
