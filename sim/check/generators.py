"""Checks of a generator, ``synthesize(**options) -> Workload``: its seed determines its output."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from sim.check.broken import BrokenRuleError
from sim.check.subject import ModuleSubject, Options, Subject, own_function
from sim.check.workloads import chosen_options, folder_rules, workload_of
from sim.workload.workload import Workload

N_JOBS = 50


@dataclass(frozen=True)
class Generator(ModuleSubject):
    """The function `synthesize` of a module."""

    kind = "generator"

    def rules(self) -> Iterator[str]:
        """Yield the sentences of broken rules."""
        parameters = inspect.signature(self.module.synthesize).parameters
        missing = [name for name in ("jobs", "seed") if name not in parameters]
        if missing:
            raise BrokenRuleError(
                f"synthesize takes no {' and no '.join(missing)}: all generators do"
            )
        workload = self._draw(seed=1)
        if workload.n_jobs != N_JOBS and "jobs" not in self.options:
            yield f"synthesize(jobs={N_JOBS}) gives {workload.n_jobs} jobs"
        yield from folder_rules(workload)
        if self._draw(seed=2).digest == workload.digest:
            yield "the seed has no effect: seeds 1 and 2 give the same workload"

    def fingerprint(self) -> str:
        """Return the digest of a workload."""
        return self._draw(seed=1).digest

    def _draw(self, seed: int) -> Workload:
        options = {"jobs": N_JOBS, **self.options, "seed": seed}
        with self.calling(f"synthesize(seed={seed})"):
            return workload_of(self.module.synthesize(**options))


def subjects(module: ModuleType, options: Options) -> list[Subject]:
    """Return the generator of a module, if it has one."""
    function = own_function(module, "synthesize")
    if function is None:
        return []
    return [Generator(module, chosen_options("generator", function, options.values, 0))]
