"""Published numbers of the papers: a file ``published.yaml`` in the room of each system.

Its package is an entry point of the kind ``published``, named after the system. Keys are the
paper's sections, tables and figures. A number is a string where it is shown as printed: with
trailing zeros (``"33.90"``), or with words (``"about 24"``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sim.base import entry_points
from sim.base.errors import InputError, unknown

MODULES_FOUND = ()
MODULES_INSTALLED = ("published",)  # for sim.base.sources
KIND, FILE = "published", "published.yaml"


class UnknownNumberError(InputError, KeyError):
    """Unknown paper, or unknown key of a paper."""


class Numbers(Mapping[str, Any]):
    """Read-only mapping of the numbers under a key of a paper's file; keys are strings."""

    def __init__(self, path: str, content: Mapping[Any, Any]) -> None:
        self._path = path
        self._content = {
            str(key): _frozen(f"{path}, {key}", value) for key, value in content.items()
        }

    def __getitem__(self, key: object) -> Any:
        """Return the number, or the numbers, of a key."""
        if str(key) not in self._content:
            raise UnknownNumberError(unknown(f"number of {self._path}", key, self._content))
        return self._content[str(key)]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys, in the file's order."""
        return iter(self._content)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._content)


def papers() -> list[str]:
    """Return the names of the papers, sorted."""
    return sorted(entry_points.installed(KIND))


@cache
def numbers(paper: str) -> Numbers:
    """Read the published numbers of a paper.

    Parameters
    ----------
    paper : str
        System of the paper: alibaba, backfill, dagps, jockey, slearn or wing.

    Returns
    -------
    Numbers
        A read-only mapping of mappings, numbers, strings and tuples.

    Raises
    ------
    InputError
        If there is no such paper; the mappings raise the same for an unknown key.
    """
    import yaml  # late: `import sim` does not need it

    if paper not in papers():
        raise UnknownNumberError(unknown("paper", paper, papers()))
    folder = Path(str(entry_points.load(KIND, paper).__file__)).parent
    text = (folder / FILE).read_text(encoding="utf-8")
    return Numbers(paper, yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def _frozen(path: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return Numbers(path, value)
    if isinstance(value, list):
        return tuple(_frozen(path, item) for item in value)
    return value
