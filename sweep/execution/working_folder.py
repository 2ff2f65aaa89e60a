"""Working folder of a worker, which may be deleted while the worker lives."""

from __future__ import annotations

import os
from pathlib import Path


def leave_if_gone() -> None:
    """Change to the folder at the working folder's path, if the working folder was deleted.

    When a node joins again, Ray unpacks the sent code again. Where two nodes share a session
    folder, this deletes the working folder of the other node's workers. Libraries look it up when
    they are imported, and fail with an error that names no file.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        named = os.environ.get("PWD", "")
        os.chdir(named if Path(named).is_dir() else "/")
