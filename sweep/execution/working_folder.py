"""Working folder of a worker, which may be deleted while the worker lives."""

from __future__ import annotations

import os
from pathlib import Path


def leave_if_gone() -> None:
    """Go to the folder that has the name of the working folder, if that was deleted.

    Ray unpacks the code that it was sent anew when a node joins again. Where two nodes share a
    session folder, this takes the working folder from the workers of the other. Libraries look it
    up when they are imported, and fail with an error that names no file.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        named = os.environ.get("PWD", "")
        os.chdir(named if Path(named).is_dir() else "/")
