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
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import CompileResult

from sim.base.kernel_cache import cache_dir, file_stem, module_folder, verify, write_checked

_LOG = logging.getLogger("sim.compiling")


class KernelCache(FunctionCache):
    """Compiled code of a kernel: a file for each signature and processor type.

    Attributes
    ----------
    was_damaged : bool
        True if the last file that was looked up was damaged, which has been logged.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = repr(function)
        self._py_func = function
        self._folder = module_folder(function.__module__)
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
        file = self._file(sig, target_context.codegen())
        try:
            verify(file)
            reduced = self._files._load_data(file.name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            self.was_damaged = True
            reason = getattr(error, "strerror", None) or error
            _LOG.warning(f"sim: {file} is damaged ({reason}): {_deleted(file)}; compiling it again")
            return None
        return CompileResult._rebuild(target_context, *reduced)

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel if the disk has room; skip one with an address of the process."""
        if data.library.has_dynamic_globals:
            return
        try:
            write_checked(self._file(sig, data.codegen), self._files._dump(data._reduce()))
        except OSError as error:
            _log_not_stored(error.strerror)

    def _file(self, sig: Any, codegen: Any) -> Path:
        key = repr(self._index_key(sig, codegen)).encode()
        return self._folder / f"{self._stem}.{hashlib.sha256(key).hexdigest()[:16]}.nbc"


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
