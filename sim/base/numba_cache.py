"""Disk cache of a compiled kernel for numba, with a checksum of every file.

numba's own cache has an index of signatures beside a file for each signature; either may be
damaged, or older than the other. Here the file's name identifies the signature: there is no index.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import CompileResult

from sim.base.kernel_cache import (
    cache_dir,
    file_stem,
    module_folder,
    shipped_folder,
    verify,
    write_checked,
)

_LOG = logging.getLogger("sim.compiling")


class _AnyProcessor(NamedTuple):
    """Code generator for any processor of a kind, as a part of a key."""

    triple: str

    def magic_tuple(self) -> tuple[str, str, str]:
        """Return the processor's kind, name and features, as numba does with NUMBA_CPU_NAME."""
        return (self.triple, "generic", "")


class KernelCache(FunctionCache):
    """Compiled code of a kernel: a file for each signature and processor type.

    A kernel that this user has not compiled may come with the wheel: for any processor, which
    measures as fast, and gives the same bits, as LLVM joins no multiplication and addition.

    Attributes
    ----------
    was_damaged : bool
        True if the last file that was looked up was damaged, which has been logged.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = repr(function)
        self._py_func = function
        self._folder = module_folder(function.__module__)
        self._shipped = shipped_folder(function.__module__)
        features: frozenset[str] = getattr(function, "features", frozenset())
        self._stem = file_stem(function.__module__, function.__qualname__, features)
        self._files = IndexDataCacheFile(self.cache_path, self._stem, None)  # without its index
        self.was_damaged = False
        self.enable()

    @property
    def cache_path(self) -> str:
        """Folder of the files."""
        return str(self._folder)

    def flush(self) -> None:
        """Delete the kernel's files."""
        for file in self._folder.glob(f"{self._stem}.*.nbc"):
            file.unlink(missing_ok=True)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled kernel; None if it is missing, or was damaged and is now deleted."""
        self.was_damaged = False
        codegen = target_context.codegen()
        places = [self._file(self._folder, sig, codegen)]
        if self._shipped.is_dir():
            triple, *_ = codegen.magic_tuple()
            places.append(self._file(self._shipped, sig, _AnyProcessor(triple)))
        for file in places:
            try:
                verify(file)
                reduced = self._files._load_data(str(file))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError) as error:
                self.was_damaged = True
                reason = getattr(error, "strerror", None) or error
                done = _deleted(file)
                _LOG.warning(f"sim: {file} is damaged ({reason}): {done}; compiling it again")
                return None
            return CompileResult._rebuild(target_context, *reduced)
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel if the disk has room; skip one with an address of the process."""
        if data.library.has_dynamic_globals:
            return
        try:
            file = self._file(self._folder, sig, data.codegen)
            write_checked(file, self._files._dump(data._reduce()))
        except OSError as error:
            _log_not_stored(error.strerror)

    def _file(self, folder: Path, sig: Any, codegen: Any) -> Path:
        key = repr(self._index_key(sig, codegen)).encode()
        return folder / f"{self._stem}.{hashlib.sha256(key).hexdigest()[:16]}.nbc"


def _deleted(file: Path) -> str:
    """Delete a file; return the outcome for the log."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        return f"it can't be deleted ({error.strerror})"
    return "deleted"


@cache
def _log_not_stored(reason: str) -> None:
    """Log once that compiled kernels can't be cached."""
    _LOG.warning(
        f"sim: compiled kernels can't be cached in {cache_dir()} ({reason}) and will be compiled "
        "again next time: free space or allow writing there, or set NUMBA_CACHE_DIR"
    )
