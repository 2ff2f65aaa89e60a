"""The simulated cluster: machines × resources, and the queues that share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard

import numpy as np

from sim.base.arrays import F8, I4, I8, frozen
from sim.base.errors import InputError, unknown
from sim.base.parameters import NotNegative, check
from sim.base.plugins import check_names
from sim.base.text import format_count
from sim.cluster.caps import Cap, parse_accounts
from sim.cluster.classes import parse_kinds, share_of_kinds
from sim.cluster.faults import NO_OUTAGES, NO_SLOWDOWNS, Outages, Slowdowns
from sim.cluster.launch import NO_LAUNCH, Launch, LaunchSpec
from sim.cluster.partitions import UNADMITTED, Rules, Unadmitted, parse_rules
from sim.cluster.power import Power
from sim.cluster.quotas import Quota, leaf_weights, parse_quotas
from sim.cluster.reservations import NO_RESERVATIONS, Reservations
from sim.cluster.topology import NO_TOPOLOGY, Topology, parse_topology

QueueMode = Literal["global", "hard", "weighted", "quota"]
_MODES = ("global", "hard", "weighted")
Unmet = Literal["wait", "fail"]
UNMET: tuple[Unmet, ...] = ("wait", "fail")
MAX_MACHINES, MAX_SLOTS = 10_000_000, 1_000_000_000
"""Size limits: larger clusters are typing errors, refused before any of them is built."""
_ROUNDING = 1e-9
"""Rounding tolerance: a part of a machine smaller than this is no machine."""


@dataclass(frozen=True)
class Cluster:
    """Machines and their resources, and the sharing of them between queues.

    Use `Cluster.slots`, `Cluster.machines` or `Cluster.mixed`; the fields are public to read.

    Attributes
    ----------
    resources : tuple of str
        Names of the R resources; ``("slot",)`` for a pool of slots.
    capacity : (M, R) float64, read-only
        Capacity of each of the M machines, in the resource's own unit.
    unit : bool
        True for a pool of slots: every task takes one slot, regardless of its demand.
    queue_mode : {"global", "hard", "weighted", "quota"}
        One cluster-wide queue; a hard capacity share for each of the workload's queues;
        weighted, work-conserving sharing between them; or quotas that lend.
    queue_share : dict of str to float
        Share (hard) or weight (weighted, quota) of each queue; empty for equal ones.
    quotas : dict of str to Quota
        The tree of queues, by name (`sim.cluster.quotas`); empty but for quota.
    fungible : tuple of str
        Resources that may be overbooked (disk, network): where the tasks on a machine demand
        more of one than it has, those that demand it run slower, in proportion, until the excess
        ends (DAGPS, §8.2.1). Only a policy that asks for it overbooks (`sim.engine.plan.Plan`).
    outages : Outages
        Times at which machines are lost and come back, counted from the first submission; none by
        default.
    slowdowns : Slowdowns
        Periods in which everything runs slower, or faster, counted likewise; none by default.
    launch : Launch
        The lag between the placement of a task, or a gang, and its start; none by default.
    stage_lag_s : float
        The lag between the end of a stage's last parent and its opening, s; 0 by default.
    enforce_limits : bool
        True if a job ends at its limit of run time (``jobs.requested_s``), counted from its first
        start: what runs of it stops, and it counts as failed. False by default.
    unmet_dependencies : {"wait", "fail"}
        Jobs whose dependencies can never be met (`sim.workload.releases`) wait for ever, as in
        Slurm, or fail, as with its kill_invalid_depend.
    machine_class : (M,) int32, read-only
        The code of each machine of a mixed cluster, an index into `classes` and `partitions`; empty
        for equal machines.
    classes : tuple of str
        Name of the class of each code, for which ``stages.runs_on`` may ask.
    partitions : tuple of tuple of str
        Names of the partitions of each code, for which ``jobs.partition`` may ask; empty for none.
    weights : tuple of int
        Weight of each code; empty for equal ones. Where nodes are chosen as in Slurm
        (`sim.engine.plan.replan`), those of the least weight come first.
    default_partition : str
        The partition of jobs that name none; "" if they may run on any machine.
    rules : mapping of str to Rules
        Rules of each partition that has some (`sim.cluster.partitions`); none by default.
    unadmitted : {"reject", "error"}
        Jobs that none of their partitions admits are rejected when they are submitted, or an error
        before the run.
    devices : str or None
        The resource that comes in whole devices of 1: a task takes a part of one of them, or whole
        ones.
    names : tuple of str
        Name of each machine of a mixed cluster, "" for none; empty if none has one.
    limits : tuple of Cap
        Caps of users, accounts, QOS and so on (`sim.cluster.caps`); none by default.
    accounts : mapping of str to str
        The account above each account, whose caps hold for it, too.
    reservations : Reservations
        Windows in which only some jobs may use a machine, counted from the first submission; none
        by default.
    power : Power or None
        What machines draw, and what that costs (`sim.cluster.power`); None if it is not metered.
    topology : Topology
        Domains of machines, such as racks (`sim.cluster.topology`); none by default.
    """

    resources: tuple[str, ...]
    capacity: F8
    unit: bool = False
    queue_mode: QueueMode = "global"
    queue_share: Mapping[str, float] = field(default_factory=dict)
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    fungible: tuple[str, ...] = ()
    outages: Outages = NO_OUTAGES
    slowdowns: Slowdowns = NO_SLOWDOWNS
    launch: Launch = NO_LAUNCH
    stage_lag_s: float = 0.0
    enforce_limits: bool = False
    unmet_dependencies: Unmet = "wait"
    machine_class: I4 = field(default_factory=lambda: np.zeros(0, np.int32))
    classes: tuple[str, ...] = ()
    partitions: tuple[tuple[str, ...], ...] = ()
    weights: tuple[int, ...] = ()
    default_partition: str = ""
    rules: Mapping[str, Rules] = field(default_factory=dict)
    unadmitted: Unadmitted = "reject"
    devices: str | None = None
    names: tuple[str, ...] = ()
    limits: tuple[Cap, ...] = ()
    accounts: Mapping[str, str] = field(default_factory=dict)
    reservations: Reservations = NO_RESERVATIONS
    power: Power | None = None
    topology: Topology = NO_TOPOLOGY

    @classmethod
    def slots(cls, n: int) -> Cluster:
        """Build one pool of `n` slots, one slot a task.

        Parameters
        ----------
        n : int
            Number of slots, at least 1.

        Raises
        ------
        InputError
            If `n` is not a whole number of at least 1, or above `MAX_SLOTS`.
        """
        if not _is_whole(n) or n < 1:
            raise InputError(f"a cluster needs a whole number of slots >= 1, not {n!r}")
        check_size(n, "slots")
        return cls(("slot",), frozen(np.full((1, 1), float(n))), unit=True)

    @classmethod
    def machines(cls, count: float, *, fungible: Sequence[str] = (), **resources: float) -> Cluster:
        """Build `count` equal machines, each with the named amounts of resources.

        Parameters
        ----------
        count : float
            Number of machines, positive; a fraction adds one smaller machine, the last, so that
            capacity can be varied continuously.
        fungible : sequence of str
            The resources that may be overbooked; see the class.
        **resources : float
            Amount of each resource on one machine, positive and finite.

        Raises
        ------
        InputError
            If a number is out of its range, no resource is named, a fungible one is unknown, or
            there are more than `MAX_MACHINES`.
        """
        if not _is_number(count) or count <= 0:
            raise InputError(f"a cluster needs a positive number of machines, not {count!r}")
        check_size(count, "machines")
        if not resources:
            raise InputError("a machine needs at least one resource, e.g. cpu=16, mem=128")
        for name, amount in resources.items():
            if not np.isfinite(amount) or amount <= 0:
                raise InputError(f"a machine's {name} must be a positive number, not {amount!r}")
        check_names("fungible resource", fungible, resources, rule=None)
        row = np.array([[float(a) for a in resources.values()]])
        whole = int(count + _ROUNDING)
        rest = count - whole
        rows = [np.repeat(row, whole, axis=0)] + ([row * rest] if rest > _ROUNDING else [])
        capacity = frozen(np.concatenate(rows))
        fungible_names = tuple(name for name in resources if name in fungible)
        return cls(tuple(resources), capacity, fungible=fungible_names)

    @classmethod
    def mixed(
        cls, machines: Sequence[Mapping[str, Any]], *, fungible: Sequence[str] = ()
    ) -> Cluster:
        """Build machines of several kinds.

        Parameters
        ----------
        machines : sequence of mapping
            One mapping a kind: ``{"count": 10, "class": "T4", "cpu": 96, "mem": 384, "devices":
            {"gpu": 2}, "partitions": ["batch*", "gpu"], "weight": 5, "nodes": "n[1-10]"}``.
            ``count`` and ``weight`` are 1 and ``class`` "" by default; ``devices`` holds the number
            of whole devices of a resource; the partition with a * is that of jobs that name none;
            ``nodes`` names the machines.
        fungible : sequence of str
            The other resources that may be overbooked; see the class.

        Raises
        ------
        InputError
            If a number is out of its range, a fungible resource is unknown, or more than one comes
            in devices.
        """
        kinds = parse_kinds(machines)
        check_size(len(kinds.capacity), "machines")
        other = [name for name in kinds.resources if name != kinds.devices]
        check_names("fungible resource", fungible, other, rule=None)
        return cls(
            kinds.resources,
            frozen(kinds.capacity),
            fungible=tuple(name for name in other if name in fungible),
            machine_class=frozen(kinds.machine_class),
            classes=kinds.classes,
            partitions=kinds.partitions,
            weights=kinds.weights,
            default_partition=kinds.default_partition,
            devices=kinds.devices,
            names=kinds.names,
        )

    def fraction(self, fraction: float) -> Cluster:
        """Return `fraction` times the machines of a mixed cluster; each kind keeps its share.

        Raises
        ------
        InputError
            If the fraction is not positive, or there are more than `MAX_MACHINES`.
        """
        if not _is_number(fraction) or fraction <= 0:
            raise InputError(f"a cluster needs a positive share of machines, not {fraction!r}")
        check_size(fraction * self.n_machines, "machines")
        rows = share_of_kinds(self.capacity, self.machine_class, fraction)
        return self._with_rows(rows, self._names_of(rows.tolist()))

    def _names_of(self, rows: Sequence[int]) -> tuple[str, ...]:
        """Return the names of rows; of machines that are there twice, the first has it."""
        seen: set[int] = set()
        names = []
        for row in rows if self.names else ():
            names.append("" if row in seen else self.names[row])
            seen.add(row)
        return tuple(names)

    def _with_rows(self, rows: I8, names: tuple[str, ...]) -> Cluster:
        classes = self.machine_class[rows] if len(self.machine_class) else self.machine_class
        capacity, classes = frozen(self.capacity[rows]), frozen(classes)
        topology = self.topology.take(rows)
        return replace(
            self, capacity=capacity, machine_class=classes, names=names, topology=topology
        )

    def with_machines_like(self, row: int, more: int) -> Cluster:
        """Return the mixed cluster with `more` machines like that of a row, or fewer.

        Raises
        ------
        InputError
            If there are not so many, or no machine is left.
        """
        keys = np.column_stack([self.machine_class, self.capacity])
        like = np.flatnonzero((keys == keys[row]).all(axis=1))
        if more < 0 and (len(like) < -more or self.n_machines <= -more):
            raise InputError(
                f"the cluster has {len(like):,} machines of this kind, of {self.n_machines:,}: "
                f"{-more:,} can't be removed, as one must be left",
                rule="range",
            )
        rows = np.arange(self.n_machines)
        if more < 0:
            rows = np.delete(rows, like[more:])
        else:
            rows = np.insert(rows, int(like[-1]) + 1, np.full(more, row))
        check_size(len(rows), "machines")
        return self._with_rows(rows, self._names_of(rows.tolist()))

    def with_copies(self, row: int, more: int) -> Cluster:
        """Return the same cluster with `more` copies of a machine, behind all others."""
        rows = np.append(np.arange(self.n_machines), np.full(more, row))
        check_size(len(rows), "machines")
        return self._with_rows(rows, self._names_of(rows.tolist()))

    def with_queues(self, mode: QueueMode, shares: Mapping[str, float] | None = None) -> Cluster:
        """Return the same cluster, shared between the workload's queues by `mode`.

        Parameters
        ----------
        mode : {"global", "hard", "weighted"}
            See the class.
        shares : mapping of str to float, optional
            A positive number for each queue; hard shares are fractions that add up to at
            most 1. Left out: equal shares for the queues that the workload names.

        Raises
        ------
        InputError
            On an unknown mode or a share out of its range.
        """
        if mode not in _MODES:
            raise InputError(f"unknown queue mode {mode!r}; valid: {', '.join(_MODES)}")
        shares_by_queue = {str(k): float(v) for k, v in (shares or {}).items()}
        for name, share in shares_by_queue.items():
            if not np.isfinite(share) or share <= 0:
                raise InputError(f"the share of queue {name!r} must be positive, not {share!r}")
        total = sum(shares_by_queue.values())
        if mode == "hard" and total > 1 + 1e-9:
            raise InputError(f"hard queue shares add up to {total:g}; the limit is 1")
        return replace(self, queue_mode=mode, queue_share=shares_by_queue, quotas={})

    def with_quotas(self, quotas: Mapping[str, Any]) -> Cluster:
        """Return the same cluster, whose queues have quotas, and borrow what others do not use.

        Parameters
        ----------
        quotas : mapping
            A row for each queue, or cohort of queues, such as ``{"a": {"parent": "all",
            "nominal": {"gpu": 8}, "borrow": {"gpu": 4}, "lend": "50%", "weight": 2}}``;
            `sim.cluster.quotas.Quota` has the keys.

        Raises
        ------
        InputError
            If a row is invalid, names a resource or class of machines that the cluster has not, or
            is below itself.
        """
        nodes = parse_quotas(quotas, self.resources, self.classes)
        weights = leaf_weights(nodes)
        return replace(self, queue_mode="quota", queue_share=weights, quotas=nodes)

    def with_limits(
        self, limits: Sequence[Mapping[str, Any]], accounts: Mapping[str, str] | None = None
    ) -> Cluster:
        """Return the same cluster, with caps on what jobs may run or use at once.

        Parameters
        ----------
        limits : sequence of mapping
            Rows such as ``{"of": "running_jobs", "by": ["user"], "at_most": 8}``; `sim.cluster
            .caps.Cap` has the keys.
        accounts : mapping of str to str, optional
            The account above each account; a cap of that one holds for both together.

        Raises
        ------
        InputError
            If a row is invalid, or an account above itself.
        """
        rows = tuple(Cap.parse(row, f"limits[{i}]") for i, row in enumerate(limits))
        return replace(self, limits=rows, accounts=parse_accounts(accounts))

    def with_partitions(
        self, rules: Mapping[str, Mapping[str, Any]], unadmitted: Unadmitted = "reject"
    ) -> Cluster:
        """Return the same cluster, with rules of its partitions.

        Parameters
        ----------
        rules : mapping of str to mapping
            Rules by name of the partition, such as ``{"gpu": {"tier": 2}}``; `sim.cluster
            .partitions.Rules` has the keys.
        unadmitted : {"reject", "error"}
            See the class.

        Raises
        ------
        InputError
            If the cluster has no such partition, or a rule or `unadmitted` is invalid.
        """
        if unadmitted not in UNADMITTED:
            raise InputError(unknown("value of unadmitted", unadmitted, UNADMITTED))
        known = list(dict.fromkeys(name for names in self.partitions for name in names))
        return replace(self, rules=parse_rules(rules, known), unadmitted=unadmitted)

    def with_outages(self, outages: Outages) -> Cluster:
        """Return the same cluster with machine outages.

        The tasks on a lost machine start again from the beginning, on any machine.

        Raises
        ------
        InputError
            If it names a machine that does not exist.
        """
        if len(outages) and outages.machine.max() >= self.n_machines:
            raise InputError(
                f"an outage of machine {outages.machine.max()}, of {self.n_machines}: "
                f"valid: 0 to {self.n_machines - 1}"
            )
        return replace(self, outages=outages)

    def with_power(self, spec: Mapping[str, Any] | None) -> Cluster:
        """Return the same cluster, whose machines draw power, which is metered.

        Parameters
        ----------
        spec : mapping or None
            See `sim.cluster.power.Power.parse`; None for no meter.

        Raises
        ------
        InputError
            If it is invalid, or names what the cluster lacks.
        """
        power = None if spec is None else Power.parse(spec)
        if power is not None:
            power.check(self.resources, self.classes)
        return replace(self, power=power)

    def with_topology(self, spec: Mapping[str, Any] | None) -> Cluster:
        """Return the same cluster, whose machines are in domains of levels, such as racks.

        Parameters
        ----------
        spec : mapping or None
            See `sim.cluster.topology.check_spec`; None for no domains.

        Raises
        ------
        InputError
            If it is invalid, or the cluster is a pool of slots, which have no places.
        """
        if spec is None:
            return replace(self, topology=NO_TOPOLOGY)
        if self.unit:
            raise InputError(
                "slots have no places, so that they are in no domains; describe machines in "
                "cluster.shape, or leave out cluster.topology"
            )
        return replace(self, topology=parse_topology(spec, self.n_machines, self.names))

    def with_reservations(self, rows: Sequence[Mapping[str, Any]]) -> Cluster:
        """Return the same cluster with advance reservations of machines.

        In their time only their jobs may run there: those whose ``jobs.reservation`` names one,
        which run nowhere else, and those of its users and accounts. What is left of a job that
        asks for one ends with its last window, and counts as failed.

        Parameters
        ----------
        rows : sequence of mapping
            See `sim.cluster.reservations.Reservations.parse`.

        Raises
        ------
        InputError
            If a row is invalid, or names a machine that does not exist.
        """
        reservations = Reservations.parse(rows)
        if len(reservations) and reservations.machine.max() >= self.n_machines:
            raise InputError(
                f"a reservation of machine {reservations.machine.max()}, of {self.n_machines}: "
                f"valid: 0 to {self.n_machines - 1}"
            )
        return replace(self, reservations=reservations)

    def with_slowdowns(self, slowdowns: Slowdowns) -> Cluster:
        """Return the same cluster with periods in which everything runs slower or faster."""
        return replace(self, slowdowns=slowdowns)

    def delayed(self, by_s: float) -> Cluster:
        """Return the same cluster, with all that happens on it `by_s` later."""
        changes = any(row.changes for row in self.limits)
        has_times = len(self.outages) or len(self.slowdowns) or len(self.reservations) or changes
        if not by_s or not has_times:
            return self
        return replace(
            self,
            outages=self.outages.delayed(by_s),
            slowdowns=self.slowdowns.delayed(by_s),
            reservations=self.reservations.delayed(by_s),
            limits=tuple(row.delayed(by_s) for row in self.limits),
        )

    def with_launch(self, launch_s: LaunchSpec, seed: int = 0) -> Cluster:
        """Return the same cluster, on which starts lag behind placements.

        A task that is placed holds its room, and starts after the lag; a task that starts again
        lags again. The slots of a gang start together, after one lag. Lags pass at the same speed
        in slow periods and on overbooked machines.

        Parameters
        ----------
        launch_s : float, sequence of float, or mapping
            The lag, s; lags from which each is drawn; or ``{"low": 0.5, "high": 1.5}``, between
            which they are uniform.
        seed : int
            Seed of the draws. Each depends on the seed, the task, and how often it was launched.

        Raises
        ------
        InputError
            If it is none of them, or a number is negative.
        """
        return replace(self, launch=Launch.parse(launch_s, seed))

    def with_stage_lag(self, stage_lag_s: float) -> Cluster:
        """Return the same cluster, on which stages open some time after their last barrier parent.

        A driver that submits a job's stages one by one, such as Spark's, learns of the end of a
        stage only after its last task has left its room: meanwhile that goes to other jobs.

        Raises
        ------
        InputError
            If `stage_lag_s` is negative or not finite.
        """
        check("stage_lag_s", stage_lag_s, NotNegative)
        return replace(self, stage_lag_s=float(stage_lag_s))

    def with_enforced_limits(self, enforce: bool = True) -> Cluster:
        """Return the same cluster, which ends jobs at their limits of run time, or does not."""
        return replace(self, enforce_limits=bool(enforce))

    def with_unmet_dependencies(self, unmet: Unmet) -> Cluster:
        """Return the same cluster, where such jobs wait for ever or fail; see the class.

        Raises
        ------
        InputError
            If `unmet` is neither "wait" nor "fail".
        """
        if unmet not in UNMET:
            raise InputError(unknown("value of unmet_dependencies", unmet, UNMET))
        return replace(self, unmet_dependencies=unmet)

    @property
    def n_machines(self) -> int:
        """Number of machines M (1 for a pool)."""
        return int(self.capacity.shape[0])

    @property
    def total(self) -> F8:
        """Capacity of the whole cluster, (R,) float64."""
        total: F8 = self.capacity.sum(axis=0)
        return total

    def describe(self) -> str:
        """Describe the cluster in one line, e.g. ``200 machines: cpu 16, mem 128``."""
        if self.unit:
            text = _counted(self.capacity[0, 0], "slot")
        elif len(self.machine_class):
            whole = zip(self.resources, self.total, strict=True)
            text = f"{_counted(self.n_machines, 'machine')} of several kinds, "
            text += ", ".join(f"{name} {amount:.10g}" for name, amount in whole) + " in total"
        else:
            first = self.capacity[0]
            shape = ", ".join(
                f"{name} {amount:g}" for name, amount in zip(self.resources, first, strict=True)
            )
            text = f"{_counted(self.total[0] / first[0], 'machine')}: {shape}"
            text += f" ({', '.join(self.fungible)} fungible)" if self.fungible else ""
        if self.queue_mode == "quota":
            return f"{text}; quotas"
        return text if self.queue_mode == "global" else f"{text}; {self.queue_mode} queues"

    def __repr__(self) -> str:
        """Describe the cluster, with the number of its outages and slow periods."""
        times = ((len(self.outages), "outages"), (len(self.slowdowns), "slow periods"))
        faults = "".join(f"; {n} {label}" for n, label in times if n)
        return f"Cluster({self.describe()}{faults})"


def check_size(n: float, unit: Literal["machines", "slots"]) -> None:
    """Refuse a cluster above the size limits."""
    limit = MAX_MACHINES if unit == "machines" else MAX_SLOTS
    if n > limit:
        raise InputError(
            f"a cluster of {n:,.0f} {unit} is too large; at most {limit:,} {unit} are simulated: "
            "lower the capacity or the count, or make each of them larger",
            rule="cluster too large",
        )


def _counted(n: float, noun: str) -> str:
    """Write a number of things, such as ``1 machine`` or ``12,345.5 machines``."""
    text = format_count(n)
    return f"{text} {noun}{'s' * (text != '1')}"


def _is_number(n: object) -> TypeGuard[float]:
    if isinstance(n, bool) or not isinstance(n, (int, float, np.integer, np.floating)):
        return False
    return bool(np.isfinite(n))


def _is_whole(n: object) -> bool:
    return _is_number(n) and float(n) == int(n)
