"""Changes of good archives, the parts of attacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from sweep.grid.config_tree import to_yaml
from tests.sweep.questions.archive.entries import Entries

CONFIG, PROVENANCE = "sweep/config.yaml", "sweep/provenance.json"
VERDICT, ANSWER, HTML = "sweep/verdict.json", "sweep/answer.json", "sweep/report.html"
LISTENER = "LISTENER"
"""Stands for the listener's address in a text."""
UNREAD = {
    "sweep/changes.diff": "not compared: changes.diff",
    PROVENANCE: "code and machine are as it says",
    HTML: "plots of single jobs, which are not compared",
}
"""Entries of which `verify` says that it does not compare all, and how it says so."""

Change = Callable[[Entries], None]


@dataclass(frozen=True)
class Attack:
    """A change of a good archive.

    Attributes
    ----------
    base : str
        Name of the good archive.
    change : callable
        Changes the entries in place.
    unread : str
        What `verify` must say if it accepts the archive; empty if it must not.
    """

    kind: str
    name: str
    base: str
    change: Change
    unread: str = ""


def entry(name: str, content: str) -> Change:
    """Replace or add an entry."""
    return lambda entries: entries.update({name: content.encode()})


def words(*more: str) -> Change:
    """Add words to the recorded command line."""

    def change(entries: Entries) -> None:
        config = yaml.safe_load(entries[CONFIG])
        entries[CONFIG] = to_yaml(config | {"words": [*config["words"], *more]}).encode()

    return change


def changed_words(start: str, new: str) -> Change:
    """Replace the recorded word that starts so."""

    def change(entries: Entries) -> None:
        config = yaml.safe_load(entries[CONFIG])
        replaced = [new if word.startswith(start) else word for word in config["words"]]
        entries[CONFIG] = to_yaml(config | {"words": replaced}).encode()

    return change


def configured(**values: Any) -> Change:
    """Set keys of ``config.yaml``."""

    def change(entries: Entries) -> None:
        config = yaml.safe_load(entries[CONFIG])
        entries[CONFIG] = to_yaml(config | values).encode()

    return change


def both(*changes: Change) -> Change:
    """Make all of these changes."""

    def all_changes(entries: Entries) -> None:
        for change in changes:
            change(entries)

    return all_changes
