"""Version of the installed distribution, from ``pyproject.toml``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("cluster-sweep")
except PackageNotFoundError:  # run from a source folder without installation
    __version__ = "0+unknown"
