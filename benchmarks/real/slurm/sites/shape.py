"""Shape of a site: nodes, partitions, limits, accounts and closures, read from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.real.slurm import configure
from benchmarks.real.slurm.accounting import Site
from sim.traces.slurm_site.hosts import expand

SHAPES = Path(__file__).parent / "shapes"
NAMES = ("mixed", "preempt", "gpus")
SPEED = 60
REQUEUED_S = 600
"""Time for which a requeued job waits until its old credential is void; 120 as shipped."""


@dataclass(frozen=True)
class Kind:
    """Like nodes."""

    names: tuple[str, ...]
    cpus: int
    mem_mb: int
    weight: int
    features: tuple[str, ...]
    gpus: int = 0

    def line(self) -> str:
        """Return what the lines of such nodes say."""
        gres = f" Gres=gpu:{self.gpus}" if self.gpus else ""
        return (
            f"CPUs={self.cpus} RealMemory={self.mem_mb}{gres} "
            f"Feature={','.join(self.features)} Weight={self.weight}"
        )


@dataclass(frozen=True)
class Partition:
    """A partition: nodes, longest time limit, tier, QOS, further words of its line."""

    nodes: tuple[str, ...]
    max_min: int
    tier: int
    qos: str = ""
    default: bool = False
    lines: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """Return what its line says."""
        words = {
            "Nodes": ",".join(self.nodes), "Default": "YES" if self.default else "NO",
            "MaxTime": self.max_min, "DefaultTime": min(self.max_min, 60),
            "PriorityTier": self.tier, "State": "UP", **self.lines,
        }  # fmt: skip
        words |= {"QOS": self.qos} if self.qos else {}
        return " ".join(f"{key}={value}" for key, value in words.items())


@dataclass(frozen=True)
class Closure:
    """Nodes that a maintenance or a drain closes; times from the first instant, s.

    `announced_s` is None for a drain, which nobody knows before.
    """

    name: str
    nodes: tuple[str, ...]
    from_s: float
    until_s: float
    announced_s: float | None = None


@dataclass(frozen=True)
class Account:
    """An account: its share, users of one share each, limits as ``sacctmgr`` takes them."""

    share: int
    users: tuple[str, ...]
    limits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """A site.

    Attributes
    ----------
    kinds, partitions, closures
        Nodes, their partitions, and when they are closed.
    qos, accounts
        Options of each QOS as ``sacctmgr`` takes them; the accounts.
    conf
        Lines of ``slurm.conf``.
    users
        How often each user submits, in relation to others.
    span_s
        Time in which jobs are submitted.
    jobs
        Classes of jobs, see `benchmarks.real.slurm.sites.submissions`.
    """

    name: str
    kinds: tuple[Kind, ...]
    partitions: Mapping[str, Partition]
    closures: tuple[Closure, ...]
    qos: Mapping[str, Mapping[str, Any]]
    accounts: Mapping[str, Account]
    conf: Mapping[str, str]
    users: Mapping[str, int]
    span_s: float
    jobs: Mapping[str, Mapping[str, Any]]
    speed: int = SPEED

    @property
    def node_names(self) -> list[str]:
        """Names of all nodes."""
        return [name for kind in self.kinds for name in kind.names]

    def kind_of(self, node: str) -> Kind:
        """Return the kind of a node."""
        return next(kind for kind in self.kinds if node in kind.names)

    def account_of(self, user: str) -> str:
        """Return the account of a user."""
        return next(name for name, account in self.accounts.items() if user in account.users)

    def write(self, folder: Path, port: int) -> Path:
        """Write ``slurm.conf`` and ``gres.conf``; the controller listens at `port`."""
        lines = configure.general(folder, port, self.speed) | {
            "JobCompType": "jobcomp/none", "SchedulerType": "sched/backfill",
            "SelectType": "select/cons_tres", "PriorityType": "priority/multifactor",
            "GresTypes": "gpu", "AccountingStorageTRES": "gres/gpu", "MinJobAge": "864000",
            "AuthInfo": f"socket={folder}/munge.socket,cred_expire={REQUEUED_S}", **self.conf,
        }  # fmt: skip
        text = [f"{key}={value}" for key, value in lines.items()]
        text += [
            f"{configure.node_line(name, port + 1 + i)} {self.kind_of(name).line()}"
            for i, name in enumerate(self.node_names)
        ]
        text += [f"PartitionName={name} {p.line()}" for name, p in self.partitions.items()]
        path = folder / "slurm.conf"
        path.write_text("\n".join(text) + "\n")
        gres = [
            # a count alone makes a node invalid: each GPU needs a file, and any will do
            f"NodeName={','.join(kind.names)} Name=gpu File=/dev/tty[0-{kind.gpus - 1}]\n"
            for kind in self.kinds
            if kind.gpus
        ]
        (folder / "gres.conf").write_text("".join(gres))
        return path

    def site(self) -> Site:
        """Return accounts and QOS for the accounting database."""
        shares = {name: account.share for name, account in self.accounts.items()}
        shares |= {
            f"{a}/{user}": 1 for a, account in self.accounts.items() for user in account.users
        }
        qos = {name: int(options.get("Priority", 0)) for name, options in self.qos.items()}
        return Site(
            shares, {}, qos, {},
            {name: _words(options) for name, options in self.qos.items() if options},
            {name: _words(a.limits) for name, a in self.accounts.items() if a.limits},
            [p.qos for p in self.partitions.values() if p.qos],
        )  # fmt: skip


def _words(options: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in options.items()]


def read(name: str) -> Shape:
    """Return a shape by its name, one of `NAMES`.

    Raises
    ------
    ValueError
        If there is no such shape.
    """
    if name not in NAMES:
        raise ValueError(f"shape {name!r}: one of {', '.join(NAMES)}")
    content = yaml.safe_load((SHAPES / f"{name}.yaml").read_text(encoding="utf-8"))

    def nodes(row: Mapping[str, Any], key: str) -> dict[str, Any]:
        return {**row, key: tuple(expand(row[key]))}

    closures = [
        Closure(row["name"], tuple(expand(row["nodes"])), row["from_s"],
                row["from_s"] + row["for_s"], row["announced_s"])
        for row in content["maintenance"]
    ]  # fmt: skip
    closures += [
        Closure("drain", tuple(expand(row["nodes"])), row["from_s"], row["until_s"])
        for row in content["drains"]
    ]
    return Shape(
        name=name,
        kinds=tuple(
            Kind(**{**nodes(row, "names"), "features": tuple(row["features"])})
            for row in content["nodes"]
        ),
        partitions={
            key: Partition(**nodes(row, "nodes")) for key, row in content["partitions"].items()
        },
        closures=tuple(closures),
        qos=content["qos"],
        accounts={
            key: Account(row["share"], tuple(row["users"]), row.get("limits", {}))
            for key, row in content["accounts"].items()
        },
        conf=content["conf"],
        users=content["users"],
        span_s=float(content["span_s"]),
        jobs=content["jobs"],
    )
