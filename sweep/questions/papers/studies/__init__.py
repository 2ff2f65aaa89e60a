"""Studies: functions that compute the figures of a published experiment from finished cells.

An experiment names its study::

    study:
      name: wing.fig10    # `fig10` in the module of the entry point `wing` of the kind `studies`
      source: Chung et al., OSDI 2020, §7.1, Fig. 10
      notes: why figures differ from the source's
      table: title of the whole table, if that is to be stored beside the page
      losses: reasons of losses, or the experiment that has them (`sweep.questions.papers.losses`)

With ``module: mine`` the name is that of a function in a user's importable module, mine.py::

    def fig1(finished):
        policies = grouped(finished.cells, "policy")
        yield from means("Fig. 1, value attained %", policies, "value_attained", 100.0)

A study is public, has one argument, ``finished`` (`sweep.report.findings.FinishedSweep`), and
yields findings; `sweep.questions.papers.figures` has the building blocks. Studies are code, not
data: a format that says how to group, compare and name cells grows into a language, with an
interpreter and a checker.

General ones are the modules here; those of a system stand in its room, as entry points. An entry
such as ``parts.wing`` is one function, ``wing``. A module's ``PAGES`` has the pages of studies
whose findings are more than one list: functions of the findings and of the losses.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from sim.base import entry_points
from sim.base.errors import InputError, unknown
from sim.base.plugins import check_names, import_user_module, module_names
from sweep.grid.options import Options
from sweep.questions.papers import losses
from sweep.questions.papers.figures import Study
from sweep.questions.papers.losses import Losses
from sweep.questions.papers.printed import KIND
from sweep.report.findings import Finding, FinishedSweep

Page = Callable[[Sequence[Finding], Losses], str]

TEXTS = ("name", "source", "notes", "table", "module")
KEYS = (*TEXTS, "losses")


def names() -> list[str]:
    """Return the names of all studies, sorted, but those of broken plug-ins."""
    listed = set[str]()
    for group in (*module_names(__name__), *entry_points.installed(KIND)):
        with contextlib.suppress(InputError):
            listed.update(_group(group))
    return sorted(listed)


def page(name: str) -> Page | None:
    """Return the page of a study whose findings are more than one list; None for others."""
    group, _, function = name.partition(".")
    pages: Mapping[str, Page] = getattr(_module(group), "PAGES", {})
    return pages.get(function)


def check(config: Any, file: Path) -> dict[str, Any]:
    """Validate the key ``study`` of an experiment; return it as a dict."""
    try:
        texts = (
            {k: v for k, v in config.items() if k != "losses"}
            if isinstance(config, Mapping)
            else {"": None}
        )
        if not all(isinstance(text, str) for text in texts.values()):
            raise InputError(f"study: give {', '.join(TEXTS)}, each a text")
        check_names("key of a study", map(str, config), KEYS, rule=None)
        losses.check(config.get("losses", {}))
        _function(config)
    except InputError as error:
        raise InputError(error.message, file=error.file or file, rule=error.rule) from error
    except Exception as error:  # in a user's module
        message = f"study module {config['module']!r} can't be imported"
        raise InputError(f"{message}: {type(error).__name__}: {error}", file=file) from error
    return dict(config)


def find(study: Mapping[str, Any], finished: FinishedSweep) -> list[Finding]:
    """Run a study on a finished sweep; if it no longer exists, the experiment's current one."""
    try:
        function = _function(study)
    except InputError:
        options = Options.from_folders(finished.config["config_dirs"])
        experiment = options.plain("experiment", finished.config["experiment"])
        function = _function(experiment["study"])
    return list(function(finished))


def _function(study: Mapping[str, Any]) -> Study:
    """Return the function that a study names."""
    if "name" not in study:
        raise InputError("study: give name, a function of finished cells such as wing.fig10")
    name, module = study["name"], study.get("module")
    if module is None:
        functions = _group(name) or _group(name.partition(".")[0])
        if name not in functions:
            raise InputError(unknown("study", name, names()), rule="unknown study")
        return functions[name]
    functions = _functions(import_user_module("study", module))
    if name not in functions:
        message = unknown(f"study of module {module}", name, [*functions])
        raise InputError(message, rule="unknown study")
    return functions[name]


def _group(group: str) -> dict[str, Study]:
    """Return the studies of a module here or of an entry; none if there is neither.

    Raises InputError if the entry's module can't be imported.
    """
    module = _module(group)
    functions = {} if module is None else _functions(module)
    prefix, _, only = group.partition(".")
    return {f"{prefix}.{name}": f for name, f in functions.items() if name == (only or name)}


def _module(group: str) -> ModuleType | None:
    if group in module_names(__name__):
        return importlib.import_module(f"{__name__}.{group}")
    return entry_points.load(KIND, group) if group in entry_points.installed(KIND) else None


def _functions(module: ModuleType) -> dict[str, Study]:
    """Return the studies of a module: its public functions of one argument, ``finished``."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and not name.startswith("_")
        and list(inspect.signature(value).parameters) == ["finished"]
    }
