"""Checks of plug-ins: the rules that a policy, reader, metric, transform or generator must keep.

`check_module` finds the plug-ins of a user's module and checks each. The rules of kinds that `sim`
knows are here; a kind above it brings its own (`sim.check.find`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sim.check.broken import BrokenRuleError
from sim.check.find import subjects
from sim.check.repeat import repeat_rules
from sim.check.subject import Options, Subject

__all__ = ["BrokenRuleError", "Checked", "check_module"]


@dataclass(frozen=True)
class Checked:
    """A plug-in that was checked.

    Attributes
    ----------
    kind, name : str
        Its kind and name.
    broken : tuple of str
        A sentence for each rule that it breaks; empty if it keeps all.
    """

    kind: str
    name: str
    broken: tuple[str, ...]


def check_module(
    name: str, *, sample: str | None = None, options: Mapping[str, Any] | None = None
) -> list[Checked]:
    """Check all plug-ins of a module.

    Parameters
    ----------
    name : str
        Name of the module, found on Python's path.
    sample : str, optional
        File or folder for a reader.
    options : mapping of str to value, optional
        Options of the plug-in's function; the defaults otherwise.

    Returns
    -------
    list of Checked
        One for each plug-in.

    Raises
    ------
    InputError
        If the module can't be imported or has no plug-in, or a sample or an option is missing.
    """
    chosen = Options(sample, dict(options or {}))
    return [
        Checked(subject.kind, subject.name, tuple(_broken(subject, name, chosen)))
        for subject in subjects(name, chosen)
    ]


def _broken(subject: Subject, module: str, options: Options) -> Iterator[str]:
    """Yield the sentences of broken rules; repeatability only of what runs at all."""
    try:
        yield from subject.rules()
        yield from repeat_rules(subject, module, options)
    except BrokenRuleError as broken:
        yield str(broken)
