"""Open the results in a browser: ``python -m sweep ui [RESULTS]``.

An index of all sweeps with their reports, and MLflow's own UI, each on a port of this machine.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sim.base.errors import InputError
from sim.base.extras import MissingExtraError
from sim.base.masking import mask
from sweep.questions.ui.index_server import Index
from sweep.questions.ui.mlflow_server import (
    DATABASE,
    HOST,
    address,
    command,
    free_port,
    hint,
    is_installed,
    tracking_uri,
)

__all__ = ["HOST", "Index", "address", "command", "free_port", "hint", "serve"]
__all__ += ["is_installed", "tracking_uri"]

_NONE_LOGGED = "No sweep is logged to MLflow yet: once one is, start this again for MLflow's pages."
_NOT_WANTED = "MLflow's pages are not served (--no-mlflow)."
_OPEN_TO_ALL = (
    "MLflow has no password: any account of this machine can delete its runs, and read your files "
    "through it (SECURITY.md); --no-mlflow serves the index alone."
)
_NO_SERVER = "MLflow's UI is not installed, only what logs to it: pip install 'cluster-sweep[ui]'"
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # three more processes that nothing here needs
    "PYTHONWARNINGS": "ignore",
}


def serve(
    source: str | None,
    default: str,
    port: int | None,
    index_port: int | None,
    *,
    with_mlflow: bool = True,
) -> int:
    """Serve the index and MLflow's UI until interrupted, or the index without it.

    Without a `source` it is the folder `default`, which the first sweep may still have to make.

    Raises
    ------
    InputError
        If `source` names no results, a port is taken, or only MLflow's server could serve it and is
        not installed.
    """
    results = Path(default).absolute() if source is None else results_folder(source)
    if not with_mlflow and results is None:
        raise InputError(f"--no-mlflow needs a folder of results, not {mask(str(source))}")
    if results is not None and not with_mlflow:
        return _index_alone(results, index_port, _NOT_WANTED)
    if results is not None and not (results / DATABASE).is_file():
        return _index_alone(results, index_port, _NONE_LOGGED)
    if not is_installed() and results is not None:
        return _index_alone(results, index_port, _NO_SERVER)
    if not is_installed():
        raise MissingExtraError(_NO_SERVER)
    uri = tracking_uri(default if source is None else source)
    port = port if port is not None else free_port()
    index = None if results is None else Index(results, index_port, port)
    if index is not None:
        print(f"Sweeps and their verdicts\n\n    {index.address}\n")
    print(f"MLflow UI of {mask(uri)}\n\n    {address(uri, port)}\n")
    print(f"{_OPEN_TO_ALL}\nCtrl-C ends it.", flush=True)
    if index is not None:
        _serve_beside(index)
    os.environ.update({k: v for k, v in _ENVIRONMENT.items() if k not in os.environ})
    words = command(uri, port)
    os.execv(words[0], words)


def _index_alone(results: Path, port: int | None, reason: str) -> int:
    """Serve the index of results without MLflow's UI; print the reason."""
    index = Index(results, port, None)
    print(f"Sweeps and their verdicts\n\n    {index.address}\n")
    print(reason)
    print("Ctrl-C ends it.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        index.serve()
    return 0


def _serve_beside(index: Index) -> None:
    """Serve the index in a process of its own, which ends when this one does."""
    parent = os.getpid()
    if os.fork():
        return
    with contextlib.suppress(KeyboardInterrupt):
        index.serve(while_true=lambda: os.getppid() == parent)
    os._exit(0)


def results_folder(source: str) -> Path | None:
    """Return the results folder that `source` names; None for a database alone or a server."""
    if "://" in source:
        return None
    path = Path(source).expanduser().resolve()
    if path.name == DATABASE:
        has_sweeps = any((path.parent / name).is_dir() for name in ("sweeps", "journal"))
        return path.parent if has_sweeps else None
    return path if path.is_dir() else None
