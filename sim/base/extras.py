"""Extras of the distribution: optional packages, and the error that names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from sim.base.errors import InputError

MODULES_FOUND = ()  # imports only other packages by name (`sim.base.sources.meaning`)
EXTRAS = {
    "sweep": (
        "alembic",
        "hydra",
        "mlflow",
        "obstore",
        "omegaconf",
        "optuna",
        "ray",
        "rich",
        "sqlalchemy",
    ),
    "frames": ("pandas",),
    "plots": ("matplotlib", "plotly"),
    "schedules": ("croniter",),
    "gym": ("gymnasium",),
}
"""Packages that each extra in ``pyproject.toml`` installs, by import name.

Not those of ``ui``: all of MLflow has the import name of its part that logs.
"""


class MissingExtraError(InputError, ImportError):
    """Missing package of an extra."""


def require(extra: str) -> None:
    """Check that the packages of an extra are installed, without importing them.

    Raises
    ------
    MissingExtraError
        If one is missing, naming the command that installs it.
    """
    missing = [package for package in EXTRAS[extra] if not _is_installed(package)]
    if missing:
        raise _error(extra, missing)


@contextmanager
def importing(extra: str) -> Iterator[None]:
    """Turn the failed import of a package of an extra into `MissingExtraError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS[extra]:
            raise
        raise _error(extra, [package]) from None


def _is_installed(package: str) -> bool:
    """Check that a package is installed; a plain folder of that name does not count."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def _error(extra: str, missing: list[str]) -> MissingExtraError:
    verb = "is" if len(missing) == 1 else "are"
    return MissingExtraError(
        f"{', '.join(missing)} {verb} not installed: pip install 'cluster-sweep[{extra}]'"
    )
