"""Studies: what a published experiment looks at in its sweep.

An experiment says it itself, if nothing but grouping, scaling and comparing is to be done::

    study:
      source: Tian et al., SoCC 2019, Figs. 11 and 12
      notes: why figures differ where they do
      table: what the whole table is of, where that is to be kept beside the page
      figures:            # see `sweep.papers.declared`
        - {figure: Fig. 11, what: "{policy}", by: [policy], metric: jct_mean_s}

``like: NAME`` takes the figures of another experiment. Where there is more to it, ``name:
dagps.table5`` names a function of a module here: its name, and it is given the finished sweep and
returns findings.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, unknown
from sim.base.plugins import check_known
from sweep.grid.options import Options
from sweep.papers import declared
from sweep.report.findings import Finding, Finished

KEYS = ("name", "source", "notes", "table", "like", "figures")
_WAYS = ("name", "like", "figures")


def names() -> list[str]:
    """Names of all studies that are code, sorted."""
    return sorted(f"{module}.{study}" for module in _modules() for study in _functions(module))


def check(config: Any, file: Path, options: Options) -> dict[str, Any]:
    """Refuse what is no study."""
    try:
        return _checked(config, options)
    except InputError as error:
        raise InputError(error.message, file=error.file or file, rule=error.rule) from error


def _checked(config: Any, options: Options) -> dict[str, Any]:
    if not isinstance(config, Mapping) or not all(
        isinstance(value, str) or key == "figures" for key, value in config.items()
    ):
        raise InputError(f"study: give {', '.join(KEYS[:-1])}, each a text, or figures")
    check_known("key of a study", map(str, config), KEYS, rule=None)
    if len(config.keys() & set(_WAYS)) != 1:
        raise InputError(f"study: give one of {', '.join(_WAYS)}")
    if "figures" in config:
        declared.check(config["figures"])
    elif "like" in config:
        _figures_of(config["like"], options)
    elif not _is_known(config["name"]):
        raise InputError(unknown("study", config["name"], names()), rule="unknown study")
    return dict(config)


def find(study: Mapping[str, Any], finished: Finished) -> list[Finding]:
    """Look at a sweep that is over; with its experiment's study of today, if its own is gone."""
    options = Options.of(finished.config["config_dirs"])
    if "name" in study and not _is_known(study["name"]):
        study = options.plain("experiment", finished.config["experiment"])["study"]
    if "name" in study:
        module, _, function = study["name"].partition(".")
        findings: list[Finding] = _functions(module)[function](finished)
        return findings
    figures = _figures_of(study["like"], options) if "like" in study else study["figures"]
    return declared.find(figures, finished)


def _figures_of(experiment: str, options: Options) -> Any:
    study = options.plain("experiment", experiment).get("study") or {}
    if "figures" not in study:
        raise InputError(f"study: experiment={experiment} has no figures of its own")
    return study["figures"]


def _modules() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def _is_known(name: str) -> bool:
    module, _, study = name.partition(".")
    return module in _modules() and study in _functions(module)


def _functions(module: str) -> dict[str, Any]:
    """Find the studies of a module: its public functions of one argument, ``finished``."""
    content = vars(importlib.import_module(f"{__name__}.{module}"))
    return {
        name: value
        for name, value in content.items()
        if inspect.isfunction(value)
        and not name.startswith("_")
        and list(inspect.signature(value).parameters) == ["finished"]
    }
