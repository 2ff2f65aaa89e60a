"""The rules of a policy: it ends every job, breaks no invariant, and sees what it declares.

`subjects` is the entry for `sim.check.find`, which a policy's class names in ``checked_by``.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from types import ModuleType
from typing import Any, Literal

import numpy as np

from policies import registry
from policies.base import Policy
from policies.check.unknown import differences, instants, recurring
from policies.knows import OMNISCIENT
from policies.views import UndeclaredError
from sim.base.errors import InputError, SimError
from sim.check import invariants
from sim.check.broken import BrokenRuleError
from sim.check.subject import Options, Subject, called, digest_result, module_file
from sim.check.worlds import (
    CLUSTERS,
    MACHINES,
    RIGID_CLUSTERS,
    SITE,
    SLOTS,
    crowd,
    rigid_crowd,
    with_devices,
    with_levels,
    with_priorities,
)
from sim.cluster.cluster import Cluster
from sim.engine.layout.rigid import NOT_RIGID
from sim.result import Result
from sim.simulation import simulate
from sim.transforms import fail_tasks
from sim.workload.workload import Workload

MAX_BROKEN = 5
"""Largest number of broken rules that are listed of a policy."""
_TRUTHS = {
    "durations": "task_duration, job_work and stage_work",
    "values": "job_priority and the worth of jobs",
    "deadlines": "job_deadline",
    "demands": "stage_demand of jobs that have not arrived",
}
"""Columns of the world with the truth of each quantity of `Knows`."""

World = tuple[str, Workload, Cluster]
_SITE = "machines with GPUs and partitions"


class _HiddenError(Exception):
    """A run that ends where the policy reads a column that it does not know."""


@contextmanager
def _calling(call: str, file: str | None) -> Iterator[None]:
    """Tell an error of a policy's view from others (`sim.check.subject.called`)."""
    try:
        with called(call, file):
            yield
    except BrokenRuleError as broken:
        if isinstance(broken.__cause__, UndeclaredError):
            raise _HiddenError(str(broken)) from broken
        raise


@dataclass(frozen=True)
class PolicySubject:
    """A registered policy with its parameters."""

    cls: type[Policy]
    file: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    kind = "policy"

    @property
    def name(self) -> str:
        """Name in the registry, or of the class."""
        return str(vars(self.cls).get("name") or self.cls.__name__)

    def rules(self) -> Iterator[str]:
        """Yield the sentences of broken rules, the first few."""
        self._check_class()
        own = (self._invariants(), self._records(), self._lost_outputs(), self._preempted())
        sentences = chain(*own, self._unknown())
        try:
            yield from islice(sentences, MAX_BROKEN)
        except _HiddenError as hidden:  # no other rule tells more
            yield str(hidden)

    def fingerprint(self) -> str:
        """Return a digest of its runs, each by a policy that is built anew."""
        try:
            runs = [
                digest_result(self._run(self._build(), workload, cluster, label))
                for label, workload, cluster in self._worlds()[:2]
            ]
        except _HiddenError as hidden:
            raise BrokenRuleError(str(hidden)) from hidden
        return hashlib.sha256("".join(runs).encode()).hexdigest()

    @cached_property
    def _is_rigid(self) -> bool:
        """True if it schedules only rigid jobs: it says so, or reserves room, which others lack."""
        if self.cls.rigid_jobs:
            return True
        try:
            simulate(crowd(0), SLOTS, self._build(), seed=7)
        except InputError as error:
            return error.rule == NOT_RIGID
        except Exception:  # it is told of where the rule is checked
            return False
        return False

    def _check_class(self) -> None:
        """Refuse a class that is not registered, or whose fields are no parameters."""
        if not _is_registered(self.cls):
            raise BrokenRuleError(
                f"is not registered: put @policies.register(...) above {self.name}"
            )
        own = vars(self.cls)
        if own.get("__annotations__") and "__dataclass_params__" not in own:
            raise BrokenRuleError(
                f"its fields are no parameters: put @dataclass(frozen=True) above {self.name}"
            )

    def _build(self, **params: Any) -> Policy:
        with called("building it", self.file):
            return registry.build(self.name, **(self.params | params))

    def _worlds(self) -> list[World]:
        if self._is_rigid:
            return [
                (f"rigid jobs on {name}", with_levels(rigid_crowd(seed), cluster), cluster)
                for seed, (name, cluster) in enumerate(RIGID_CLUSTERS.items())
                if not (self.cls.has_own_lag and cluster.queue_mode == "hard")
            ] + [(f"rigid jobs on {_SITE}", with_devices(rigid_crowd(0), 0), SITE)]
        plain = [(f"jobs on {name}", crowd(0), cluster) for name, cluster in CLUSTERS.items()]
        gangs = [
            (f"gangs on {name}", with_levels(crowd(2, gangs=True), cluster), cluster)
            for name in ("slots", "machines", "machines-hard", "machines-racks")
            if (cluster := CLUSTERS[name])
        ]
        return [*plain, (f"jobs on {_SITE}", with_devices(crowd(0), 0), SITE), *gangs]

    def _policies(self) -> list[Policy]:
        """Return the policy with its own fit and, of jobs that are not rigid, with skip."""
        own = self._build()
        if self._is_rigid or own.fit == "skip":
            return [own]
        return [own, replace(own, fit="skip")]

    def _invariants(self) -> Iterator[str]:
        for policy in self._policies():
            for label, workload, cluster in self._worlds():
                where = f"{label}, fit={policy.fit}"
                try:
                    invariants.check(self._run(policy, workload, cluster, where), policy.fit)
                except BrokenRuleError as broken:
                    yield _placed(where, broken)

    def _records(self) -> Iterator[str]:
        """Check that one instance runs twice alike, whatever is recorded."""
        policy = self._build()
        for label, workload, cluster in self._worlds()[:1]:
            try:
                first = self._run(policy, workload, cluster, label)
                again = self._run(policy, workload, cluster, label, record="jobs")
                invariants.same_bits(first, again)
            except BrokenRuleError as broken:
                yield _placed(f"{label}, the same instance twice", broken)

    def _lost_outputs(self) -> Iterator[str]:
        """Check that jobs end where attempts fail and outputs are lost."""
        if self._is_rigid:
            return
        workload = fail_tasks(crowd(3), single=0.2, lost=0.5)
        where = "jobs whose tasks fail on slots"
        try:
            result = self._run(self._build(), workload, SLOTS, where)
        except BrokenRuleError as broken:
            yield _placed(where, broken)
            return
        if not np.isfinite(result.job_finish).all():
            yield f"{where}: a job never ends"

    def _preempted(self) -> Iterator[str]:
        """Check that jobs end where those of higher priority preempt others."""
        policy = self._build()
        if policy.preemption is None:
            policy = replace(policy, preemption={"by": "priority"})
        worlds = [("jobs", "slots", crowd(0)), ("gangs", "machines", crowd(5, gangs=True))]
        if self._is_rigid:
            rigid = with_priorities(rigid_crowd(0))
            worlds = [("rigid jobs", label, rigid) for label in ("slots", "machines")]
        for jobs, label, workload in worlds:
            cluster = RIGID_CLUSTERS[label] if self._is_rigid else CLUSTERS[label]
            where = f"{jobs} that are preempted on {label}"
            if self._is_refused(policy, workload, cluster):
                continue
            try:
                invariants.check(self._run(policy, workload, cluster, where), policy.fit)
            except BrokenRuleError as broken:
                yield _placed(where, broken)

    def _is_refused(self, policy: Policy, workload: Workload, cluster: Cluster) -> bool:
        """Tell whether the policy, or the engine, says that it means nothing with preemption."""
        try:
            simulate(workload, cluster, policy, seed=7, record="jobs")
        except InputError:
            return True
        except Exception:  # it is told of where the rule is checked
            return False
        return False

    def _unknown(self) -> Iterator[str]:
        """Check that starts are the same if what it declares not to know is changed."""
        policy = self._build()
        for quantity, columns in _TRUTHS.items():
            source = getattr(policy.may_know, quantity)
            if source != "true" and (where := self._sees(policy, quantity)):
                yield (
                    f"declares {quantity}={source!r}, and {where}: it reads what it does not "
                    f"declare ({columns}); say knows = Knows({quantity}='true'), or do without"
                )

    def _sees(self, policy: Policy, quantity: str) -> str:
        """Return where starts change with the true values of one quantity; "" for nowhere."""
        blind = replace(OMNISCIENT, **{quantity: getattr(policy.may_know, quantity)})
        for seed in (0, 1):
            for label, workload, cluster in self._learning_worlds(seed, quantity):
                result = self._run(policy, workload, cluster, label)
                for instant_s in instants(result):
                    with _calling(f"a run of {label} with other {quantity}", self.file):
                        n = differences(result, policy, blind, instant_s)
                    if n:
                        return (
                            f"{n} tasks of {label} start otherwise before {instant_s:.4g} s if "
                            "only what is not known by then changes"
                        )
        return ""

    def _learning_worlds(self, seed: int, quantity: str) -> list[World]:
        if self._is_rigid:
            return [("rigid jobs on slots", rigid_crowd(seed), SLOTS)]
        workload = recurring(seed, self.cls.own_columns)
        worlds = [("jobs on slots", workload, SLOTS), ("jobs on machines", workload, MACHINES)]
        if quantity == "demands" and seed == 0:  # as of GPUs; one world, as each costs seconds
            worlds.append((f"jobs on {_SITE}", with_devices(workload, seed), SITE))
        return worlds

    def _run(
        self,
        policy: Policy,
        workload: Workload,
        cluster: Cluster,
        where: str,
        record: Literal["jobs", "tasks"] = "tasks",
    ) -> Result:
        with _calling(f"a run of {where}", self.file):
            return simulate(workload, cluster, policy, seed=7, record=record)


def undeclared(policy: Policy) -> tuple[str, ...]:
    """Return the quantities of `Knows` whose truth a policy reads, but does not declare.

    It runs on small worlds, and again where only that truth is another: a finding is certain, and
    nothing found is no proof. One that reads a column that it does not know has none: its runs fail
    (`policies.views`).

    Raises
    ------
    BrokenRuleError
        If a run of it fails.
    """
    subject = PolicySubject(type(policy))
    unknown = [name for name in _TRUTHS if getattr(policy.may_know, name) != "true"]
    try:
        return tuple(name for name in unknown if subject._sees(policy, name))
    except _HiddenError:
        return ()


def subjects(module: ModuleType, options: Options) -> list[Subject]:
    """Return the policies that a module defines: those registered, else its subclasses of Policy.

    Raises
    ------
    InputError
        If a parameter is unknown.
    """
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Policy)
        and value.__module__ == module.__name__
    ]  # fmt: skip
    registered = [cls for cls in classes if _is_registered(cls)]
    for cls in registered:
        known = [f.name for f in dataclasses.fields(cls)]
        unknown = [name for name in options.values if name not in known]
        if unknown:
            raise InputError(
                f"policy {cls.name} has no parameter {unknown[0]!r}; it has {', '.join(known)}"
            )
    file = module_file(module)
    return [PolicySubject(cls, file, dict(options.values)) for cls in registered or classes]


def _is_registered(cls: type[Policy]) -> bool:
    """Tell whether a class, and not one that it inherits from, is registered."""
    return bool(vars(cls).get("name")) and registry.spec(cls.name) is cls


def _placed(where: str, broken: SimError) -> str:
    """Return a sentence with the world in front, unless it names it already."""
    text = str(broken)
    return text if where in text else f"{where}: {text}"
