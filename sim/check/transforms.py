"""Checks of a transform, a function of its module's name from one workload to another."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from sim.base.errors import InputError
from sim.base.plugins import options as options_of
from sim.check.subject import ModuleSubject, Options, Subject, own_function
from sim.check.workloads import chosen_options, folder_rules, workload_of
from sim.check.worlds import crowd
from sim.workload.workload import Workload


@dataclass(frozen=True)
class Transform(ModuleSubject):
    """The function of a module's name."""

    kind = "transform"

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.module.__name__.rpartition(".")[2]

    def rules(self) -> Iterator[str]:
        """Yield the sentences of broken rules."""
        workload = _copy(crowd(1))
        before = workload.digest
        changed = self._apply(workload)
        if _copy(workload).digest != before:
            yield "changes the workload that it is given, instead of returning another one"
        yield from folder_rules(changed)

    def fingerprint(self) -> str:
        """Return the digest of a changed workload."""
        return self._apply(_copy(crowd(1))).digest

    def _apply(self, workload: Workload) -> Workload:
        with self.calling(self.name):
            return workload_of(getattr(self.module, self.name)(workload, **self.options))


def subjects(module: ModuleType, options: Options) -> list[Subject]:
    """Return the transform of a module, if it has one.

    Raises
    ------
    InputError
        If an option is unknown, or one without a default is not given.
    """
    name = module.__name__.rpartition(".")[2]
    function = own_function(module, name)
    if function is None:
        return []
    chosen = chosen_options("transform", function, options.values, 1)
    known = options_of(function, n_fixed=1)
    missing = [key for key, default in known.items() if default is inspect.Parameter.empty]
    missing = [key for key in missing if key not in chosen]
    if missing:
        raise InputError(
            f"the transform {name} needs {missing[0]}: give --option {missing[0]}=VALUE"
        )
    return [Transform(module, chosen)]


def _copy(workload: Workload) -> Workload:
    """Return the same workload, whose digest is computed anew."""
    return Workload.from_tables(
        jobs=workload.jobs,
        stages=workload.stages,
        tasks=workload.tasks,
        stage_edges=workload.stage_edges,
    )
