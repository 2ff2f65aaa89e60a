"""The exceptions of the simulator: few, and each tells the way out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable

from sim.base.text import printable


class SimError(Exception):
    """Anything this project raises on purpose."""


class InputError(SimError, ValueError):
    """A configuration, file or workload is wrong; nothing has been started.

    Parameters
    ----------
    message : str
        Names the value, the valid range and the way out.
    file : path-like, optional
        The file the value came from.
    line : int, optional
        Its line there, counted from 1.
    rule : str, optional
        The short name of the rule that was broken, as reports count it.
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
        """Give ``file:line: message [rule]``, leaving out what is unknown; fit for a terminal."""
        where = ""
        if self.file is not None:
            where = f"{self.file}:{self.line}: " if self.line is not None else f"{self.file}: "
        elif self.line is not None:
            where = f"line {self.line}: "
        tail = f" [{self.rule}]" if self.rule else ""
        return printable(f"{where}{self.message}{tail}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by value, keyword fields included (workers send errors to the driver)."""
        return _rebuild_input_error, (type(self), self.message, self.file, self.line, self.rule)


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Word the message for a `name` that is not among `known`, with the nearest that is."""
    names = list(known)
    valid = ", ".join(names) or "(none)"
    return f"unknown {kind} {name!r}; {did_you_mean(name, names)}valid: {valid}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``"did you mean 'x'? "`` for the nearest of `known`, "" if none is near."""
    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}? " if near else ""


def summary_line(error: BaseException) -> str:
    """Return the first line of what an exception says, its type's name if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _rebuild_input_error(
    cls: type[InputError], message: str, file: str | None, line: int | None, rule: str | None
) -> InputError:
    return cls(message, file=file, line=line, rule=rule)


class PolicyError(SimError):
    """A policy gave the kernel nonsense (a NaN key, an unknown queue, a negative limit)."""


class EvaluatorError(SimError):
    """An evaluator returned what is no result."""


class DeadlockError(SimError):
    """Jobs are left, nothing runs, and no event can ever come."""
