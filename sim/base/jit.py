"""How kernels are compiled: the decorators, what makes one of its parts, and plain Python instead.

A kernel is written once, with all that any run may need. What a run has or does without is a
`Feature`, and `specialised` binds it to True or False before the kernel is compiled: what is then
behind an ``if`` that can't be true costs neither time to compile nor time to run.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from sim.base.kernel_cache import (
    CHECKED,
    cache_dir,
    exclusive_lock,
    file_stem,
    is_intact,
    module_folder,
)

F = TypeVar("F", bound=Callable[..., Any])

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
"""False when kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""

TESTED_NUMBA = ("0.68.",)
"""Beginnings of the versions of numba whose inside `sim.base.part_library` is known to fit."""

_LOG = logging.getLogger("sim.compiling")  # on standard error, unless somebody configures it

os.environ["NUMBA_CACHE_DIR"] = str(cache_dir())
if JIT:
    import numba
    from numba.core import event

    from sim.base.numba_cache import KernelCache

    try:
        from sim.base import part_library
    except (ImportError, AttributeError):  # a numba with another inside
        part_library = None  # type: ignore[assignment]

    # somebody may have imported numba before us
    numba.config.CACHE_DIR = str(cache_dir())  # type: ignore[attr-defined]

    class _Saying(event.Listener):
        """Says something when a kernel has to be compiled."""

        def __init__(self, text: str, cache: KernelCache) -> None:
            self._text = text
            self._cache = cache

        def on_start(self, event: Any) -> None:
            """Say it once, unless it was said why."""
            if self._text and not self._cache.found_damage:
                _LOG.warning(self._text)
            self._text = ""

        def on_end(self, event: Any) -> None:
            """Say nothing."""


def jit(function: F) -> F:
    """Compile `function` at its first call, without the GIL, and keep the result on disk.

    Signatures are lazy on purpose: explicit ones refuse the read-only arrays that Ray hands out.
    No fast-math: results are the same bits with and without the JIT.
    """
    return _compile(function, cache=True)


def part(function: F) -> F:
    """Compile `function` as a part of the kernels that call it: Python itself can't.

    Without an entry from Python, a file and machine code of its own it costs much less to compile
    and to load (`sim.base.part_library`).
    """
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: F) -> F:
    """Compile `function`, which is called from one place, as a `part` that LLVM may put there.

    Numba, asked to do that itself, takes as long again as all of LLVM, for no faster kernel.
    """
    return part(function)


class Feature(str):
    """A name that `specialised` binds to True or False."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Raise TypeError: nobody has said."""
        raise TypeError(f"whether there are {self} is known in a variant; see `specialised`")


@cache
def specialised(kernel: F, features: frozenset[str]) -> F:
    """Return the variant of a `jit` function that has `features`, and no others.

    It is a copy, and so is all that it calls: functions of the same code, whose modules' names
    stand for the copies and, where they are features, for True or False. Each copy has a name of
    its own: by it, and a number that another process may give to another variant's, numba links.
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
        bound.__qualname__ = _named(function, features)
        bound.features = features  # type: ignore[attr-defined]
        copies[key] = copied = _compile(bound, **function.kernel_options)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, Feature):
                names[name] = value in features
            elif hasattr(getattr(value, "py_func", value), "kernel_options"):
                names[name] = copy(value)
        return copied

    return cast(F, copy(kernel))


def compiled(function: F, *args: Any, saying: str = "") -> F:
    """Return a `jit` function for arguments of the types of `args`, and of no others.

    A call of it skips the look-up of its arguments' types, which takes longer than a short kernel.
    Where it is not kept on disk it is compiled now, and `saying` is said before.
    """
    if not JIT:
        return function
    types = tuple(numba.typeof(arg) for arg in args)
    kernel: Any = function
    with event.install_listener("numba:compile", _Saying(saying, kernel._cache)):
        return cast(F, kernel.compile(types))


def is_cached(kernel: Callable[..., Any], features: frozenset[str]) -> bool:
    """Tell whether this machine keeps the variant of a kernel with `features`, undamaged."""
    function = getattr(kernel, "py_func", kernel)
    begin = file_stem(function.__module__, _named(function, features), features)
    return not JIT or any(map(is_intact, module_folder(function.__module__).glob(f"{begin}.*.nbc")))


def _named(function: Callable[..., Any], features: Iterable[str]) -> str:
    variant = hashlib.sha256("-".join(sorted(features)).encode()).hexdigest()[:8]
    return f"{function.__qualname__}_{variant}"


def _compile(function: F, **options: Any) -> F:
    function.kernel_options = dict(options)  # type: ignore[attr-defined]
    if not JIT:
        return function
    if "no_cpython_wrapper" in options and _parts_are_linked():
        options = options | {"pipeline_class": part_library.PartCompiler}
    njit: Any = numba.njit
    keeps = options.pop("cache", False)
    dispatcher = njit(nogil=True, error_model="numpy", boundscheck=CHECKED, **options)(function)
    template_of = dispatcher.get_call_template

    def widened(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return template_of(tuple(_wide(arg) for arg in args), kws)

    dispatcher.get_call_template = widened  # calls from other kernels
    if keeps:
        dispatcher._cache = KernelCache(function)
        _compile_alone(dispatcher, function)
    return cast(F, dispatcher)


@cache
def _parts_are_linked() -> bool:
    """Tell whether parts can be compiled by `sim.base.part_library` with this numba.

    Versions that all tests passed with are believed; any other is tried, which takes 0.3 s.
    """
    if part_library is None or os.environ.get("SIM_PLAIN_PARTS"):
        return False
    return numba.__version__.startswith(TESTED_NUMBA) or part_library.is_usable()


def _compile_alone(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Let `dispatcher` compile nothing that another process is compiling: wait and load it."""
    compile_now = dispatcher.compile
    lock: Path = module_folder(function.__module__) / f"{function.__qualname__}.lock"

    def compile_alone(sig: Any) -> Any:
        with exclusive_lock(lock):
            return compile_now(sig)

    dispatcher.compile = compile_alone


def _wide(arg: Any) -> Any:
    """Return the type that kernels pass `arg` as: one compilation serves every integer."""
    plain = numba.types.unliteral(arg)
    return numba.types.int64 if isinstance(plain, numba.types.Integer) else plain
