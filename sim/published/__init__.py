"""Published numbers of the five papers: a file a paper, which everybody reads.

Keys are the paper's sections, tables and figures. A number is a text where it is to be shown as it
is printed: with the zeros at its end (``"33.90"``), or with words (``"about 24"``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, unknown

_HERE = Path(__file__).parent


class UnknownNumberError(InputError, KeyError):
    """A paper, or a key of one, that is not there."""


class Numbers(Mapping[str, Any]):
    """What stands under a key of a paper's file, to be read only; keys are texts."""

    def __init__(self, where: str, content: Mapping[Any, Any]) -> None:
        self._where = where
        self._content = {
            str(key): _frozen(f"{where}, {key}", value) for key, value in content.items()
        }

    def __getitem__(self, key: object) -> Any:
        """Return the number, or the numbers, of a key."""
        if str(key) not in self._content:
            raise UnknownNumberError(unknown(f"number of {self._where}", key, self._content))
        return self._content[str(key)]

    def __iter__(self) -> Iterator[str]:
        """Go over the keys, in the file's order."""
        return iter(self._content)

    def __len__(self) -> int:
        """Count the keys."""
        return len(self._content)


def papers() -> list[str]:
    """Names of the papers, sorted."""
    return sorted(file.stem for file in _HERE.glob("*.yaml"))


@cache
def numbers(paper: str) -> Numbers:
    """Read what is published in a paper.

    Parameters
    ----------
    paper : str
        Its system: alibaba, backfill, dagps, jockey, slearn or wing.

    Returns
    -------
    Numbers
        A mapping of mappings, numbers, texts and tuples, that can't be written to.

    Raises
    ------
    InputError
        If there is no such paper; the mappings raise the same for a key that is not theirs.
    """
    import yaml  # only where a number is asked for: `sim` is imported without

    if paper not in papers():
        raise UnknownNumberError(unknown("paper", paper, papers()))
    text = (_HERE / f"{paper}.yaml").read_text(encoding="utf-8")
    return Numbers(paper, yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def _frozen(where: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return Numbers(where, value)
    if isinstance(value, list):
        return tuple(_frozen(where, item) for item in value)
    return value
