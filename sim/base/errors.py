"""Exceptions of the simulator; every message names the way out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable

from sim.base.text import printable


class SimError(Exception):
    """Base class of this project's exceptions."""


class InputError(SimError, ValueError):
    """Invalid configuration, file or workload; nothing has been started.

    Parameters
    ----------
    message : str
        The value, the valid range and the way out.
    file : path-like, optional
        File that holds the value.
    line : int, optional
        Line in the file, counted from 1.
    rule : str, optional
        Short name of the broken rule, by which reports count errors.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | os.PathLike[str] | None = None,
        line: int | None = None,
        rule: str | None = None,
    ) -> None:
        super().__init__(message, file, line, rule)
        self.message = message
        self.file = None if file is None else os.fspath(file)
        self.line = line
        self.rule = rule

    def __str__(self) -> str:
        """Format as ``file:line: message [rule]``, without unknown parts; safe for a terminal."""
        position = ""
        if self.file is not None:
            position = f"{self.file}:{self.line}: " if self.line is not None else f"{self.file}: "
        elif self.line is not None:
            position = f"line {self.line}: "
        rule = f" [{self.rule}]" if self.rule else ""
        return printable(f"{position}{self.message}{rule}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by value, keyword fields included (workers send errors to the driver)."""
        return _rebuild_input_error, (type(self), self.message, self.file, self.line, self.rule)


MAX_VALID, N_CLOSEST = 24, 5
"""Most valid names that a message lists; how many, the closest ones, if there are more."""


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the message for a `name` that is not among `known`, with the closest match.

    >>> unknown("policy", "fiffo", ["las", "fifo"])
    "unknown policy 'fiffo'; did you mean 'fifo'? valid: las, fifo"
    """
    names = list(known)
    valid = ", ".join(names) or "(none)"
    if len(names) > MAX_VALID:
        closest = difflib.get_close_matches(str(name), names, n=N_CLOSEST, cutoff=0.0)
        valid = f"{', '.join(closest)} and {len(names) - N_CLOSEST} more"
    return f"unknown {kind} {name!r}; {did_you_mean(name, names)}valid: {valid}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``"did you mean 'x'? "`` for the closest of `known`, "" if none is close."""
    matches = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f"did you mean {matches[0]!r}? " if matches else ""


def summary_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or its type's name if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _rebuild_input_error(
    cls: type[InputError], message: str, file: str | None, line: int | None, rule: str | None
) -> InputError:
    return cls(message, file=file, line=line, rule=rule)


class PolicyError(SimError):
    """Invalid output of a policy (a NaN key, an unknown queue, a negative limit)."""


class EvaluatorError(SimError):
    """Invalid result of an evaluator."""


class AccountError(SimError):
    """Accounts of a checked run that do not add up: a fault of the simulator."""


class DeadlockError(SimError):
    """Deadlock: unfinished jobs, no running task, and no event to come."""
