"""Version of the installed distribution; ``pyproject.toml`` is its one source."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("cluster-sweep")
except PackageNotFoundError:  # a folder on the path, which nobody has installed
    __version__ = "0+unknown"
