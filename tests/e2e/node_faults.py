"""Faults of single nodes (sources, clock, disk), and an object store that refuses some writes."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

CHANGED = "sweep/execution/cell.py"
HOUR_S = 3600

_CLOCK = """
import time

_time = time.time
time.time = lambda: _time() + {fast_s}
"""


def change_sources(packages: Path, folder: Path) -> str:
    """Return a line of shell that gives a node another version of the project."""
    other = folder / "other"
    if not other.exists():
        for name in ("sim", "policies", "sweep"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(packages / name, other / name, ignore=ignored)
        with (other / CHANGED).open("a") as file:
            file.write("\n\ndef another() -> int:\n    return 1\n")
    names = ("sim", "policies", "sweep")
    return " && ".join(f"mount --bind {other / name} {packages / name}" for name in names)


def shift_clock(folder: Path, fast_s: int = HOUR_S) -> str:
    """Return a line of shell that sets Python's clock on a node an hour fast, or slow.

    Only Python's clock, because compiled code that waits for a time of day would wait for an hour.
    """
    library = folder / f"clock{fast_s}"
    library.mkdir(exist_ok=True)
    (library / "sitecustomize.py").write_text(_CLOCK.format(fast_s=fast_s))
    return f"export PYTHONPATH={library}:$PYTHONPATH"


def mount_small_disk(folder: Path, size: str = "40m") -> str:
    """Return a line of shell that mounts a small file system on a folder, for one node alone."""
    folder.mkdir(exist_ok=True)
    return f"mount -t tmpfs -o size={size} tmpfs {folder}"


def fill_disk(folder: Path) -> None:
    """Fill the file system of a folder."""
    with contextlib.suppress(OSError), (folder / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))


def refuse_writes(
    app: Callable[..., Iterable[bytes]], every: int
) -> Callable[..., Iterable[bytes]]:
    """Make a web application refuse one of `every` PUTs and POSTs, as a busy store does."""
    n_put = 0

    def answer(environ: dict[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
        nonlocal n_put
        n_put += environ["REQUEST_METHOD"] in ("PUT", "POST")
        if environ["REQUEST_METHOD"] in ("PUT", "POST") and n_put % every == 0:
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>"]
        return app(environ, start)

    return answer


def main(address: str, port: str, every: str) -> None:
    """Serve buckets at an address."""
    # only the process that serves needs them
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    app = DomainDispatcherApplication(create_backend_app)
    run_simple(address, int(port), refuse_writes(app, int(every)), threaded=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
