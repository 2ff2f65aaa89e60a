"""Subjects of a check: a plug-in of some kind, with its rules and a fingerprint of its outputs."""

from __future__ import annotations

import hashlib
import inspect
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from sim.base.errors import summary_line
from sim.check.broken import BrokenRuleError
from sim.result import Result


@dataclass(frozen=True)
class Options:
    """Input of a check beside the module.

    Attributes
    ----------
    sample : str or None
        File or folder that a reader reads.
    values : dict
        Options of the plug-in's function; those left out have their defaults.
    """

    sample: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


class Subject(Protocol):
    """A plug-in that is checked."""

    @property
    def kind(self) -> str:
        """Kind of the plug-in: policy, reader, metric, transform, generator, evaluator."""

    @property
    def name(self) -> str:
        """Its name."""

    def rules(self) -> Iterator[str]:
        """Check each rule of the kind but repeatability; yield a sentence for each broken one."""

    def fingerprint(self) -> str:
        """Return a digest of its outputs on fixed inputs, the same whenever it is called."""


@contextmanager
def called(call: str, file: str | None) -> Iterator[None]:
    """Turn an exception of a user's code into BrokenRuleError, with the line of the user's file.

    Raises
    ------
    BrokenRuleError
        If the code inside raises; a BrokenRuleError is raised unchanged.
    """
    try:
        yield
    except BrokenRuleError:
        raise
    except Exception as error:
        raise BrokenRuleError(
            f"{call} raises {type(error).__name__}: {summary_line(error)}{_line(error, file)}"
        ) from error


def _line(error: Exception, file: str | None) -> str:
    """Return the last line of a file that an error passed through: `` (edf.py:12)``."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f" ({Path(file).name}:{lines[-1]})" if file and lines else ""


@dataclass(frozen=True)
class ModuleSubject:
    """A plug-in that is a function of a module, with the user's options."""

    module: ModuleType
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the module."""
        return self.module.__name__

    def calling(self, call: str) -> AbstractContextManager[None]:
        """Turn an exception of the module into BrokenRuleError; see `called`."""
        return called(call, module_file(self.module))


def own_function(module: ModuleType, name: str) -> Any:
    """Return a function that a module defines; None if it has none, or imports it."""
    function = getattr(module, name, None)
    is_own = inspect.isfunction(function) and function.__module__ == module.__name__
    return function if is_own else None


def digest_result(result: Result) -> str:
    """Return a digest of the times, the machines and the metrics of a run."""
    content = hashlib.sha256()
    for name in ("job_start", "job_finish", "job_failed", "task_start", "task_machine"):
        column = getattr(result, name)
        if column is not None:
            content.update(np.ascontiguousarray(column).tobytes())
    return content.hexdigest()


def digest_numbers(numbers: Mapping[str, Any]) -> str:
    """Return a digest of numbers by name, to the bit, in the order of their names."""
    lines = (f"{name}={_exact(value)}\n" for name, value in sorted(numbers.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _exact(value: object) -> str:
    return float(value).hex() if isinstance(value, (int, float, np.number)) else repr(value)


def module_file(module: ModuleType) -> str | None:
    """Return the file of a module."""
    return getattr(module, "__file__", None)
