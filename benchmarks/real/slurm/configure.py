"""Settings of a cluster, and the ``slurm.conf`` that says them."""

from __future__ import annotations

import getpass
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SHORT = "bf_interval=1,bf_resolution=1,bf_max_job_test=1000,bf_max_time=10"
"""Backfilling with short intervals: a plan every second, its times rounded to seconds."""
EXPERIMENTS = {
    "interval1": "bf_interval=1",
    "interval120": "bf_interval=120",
    "resolution1": "bf_resolution=1",
    "linear1": "bf_window_linear=1",
    "delay0": "batch_sched_delay=0",
    "shortlinear1": f"{SHORT},bf_window_linear=1",
}
"""Kinds of backfilling with one setting changed against as shipped, or against `SHORT`."""
SLOWER = {"x20": "", "shortx20": SHORT}
"""As shipped and with short intervals at `SLOWER_SPEED`."""
SLOWER_SPEED = 20
KINDS = {"": "", "short": SHORT, **EXPERIMENTS, **SLOWER}
VARIANTS = ("builtin", "builtin_node", *("_".join(("backfill", k)).rstrip("_") for k in KINDS))
OPTIONS = {
    "bf_interval": "interval_s",
    "bf_resolution": "resolution_s",
    "bf_max_job_test": "depth",
    "bf_job_part_count_reserve": "reserve",
    "bf_window_linear": "linear_s",
    "batch_sched_delay": "main_delay_s",
}
"""Options of Slurm and the names that the model has for them."""
MULTIFACTOR = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "1000",
    "PriorityMaxAge": "0-04:00:00",
    "PriorityWeightJobSize": "1000",
    "PriorityWeightPartition": "500",
}
"""Age and fair share need an accounting database: without one Slurm ignores their weights."""


@dataclass(frozen=True)
class Settings:
    """Setup of one cluster.

    Attributes
    ----------
    scheduler
        ``builtin`` (in the order of priority, nobody overtakes) or ``backfill``.
    parameters
        Slurm's ``SchedulerParameters``; empty as shipped.
    priority
        ``basic`` (in the order of submission) or ``multifactor``.
    n_nodes, cpus_per_node
        Like nodes.
    speed
        Seconds of the daemons' clock a second.
    """

    scheduler: str
    parameters: str
    priority: str
    n_nodes: int
    cpus_per_node: int = 1
    speed: int = 60

    def lines(self) -> dict[str, str]:
        """Return the lines of ``slurm.conf`` that decide what starts when."""
        lines = {
            "SchedulerType": f"sched/{self.scheduler}",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU",
            "PriorityType": "priority/basic",
        }
        if self.parameters:
            lines["SchedulerParameters"] = self.parameters
        return lines | (MULTIFACTOR if self.priority == "multifactor" else {})

    def described(self) -> dict[str, Any]:
        """Return the settings as they are kept beside a run."""
        partitions = dict(self.partitions())
        return asdict(self) | {"slurm_conf": self.lines(), "partitions": partitions}

    def partitions(self) -> list[tuple[str, int]]:
        """Return names and factors of the partitions; all have all nodes."""
        return [("p", 1), ("express", 2)] if self.priority == "multifactor" else [("p", 1)]

    @property
    def node_names(self) -> list[str]:
        """Names of the nodes."""
        return [f"n{node}" for node in range(self.n_nodes)]

    def write(self, folder: Path, port: int) -> Path:
        """Write ``slurm.conf`` into the folder of a cluster, with ports from `port` on."""
        return write(self, folder, port)


def named(name: str, n_nodes: int, speed: int) -> Settings:
    """Return the settings called ``SCHEDULER-PRIORITY``, such as ``backfill_short-basic``.

    ``builtin_node`` has one node of `n_nodes` CPUs: enough where nothing is reserved, as then
    Slurm counts CPUs; under backfill it would reserve that node whole.

    Raises
    ------
    ValueError
        If there is no such scheduler or priority.
    """
    variant, _, priority = name.partition("-")
    if variant not in VARIANTS or priority not in ("basic", "multifactor"):
        raise ValueError(
            f"settings {name!r}: one of {', '.join(VARIANTS)}, a hyphen, basic or multifactor"
        )
    scheduler, _, kind = variant.partition("_")
    nodes, cpus = (1, n_nodes) if kind == "node" else (n_nodes, 1)
    speed = SLOWER_SPEED if kind in SLOWER else speed
    return Settings(scheduler, KINDS.get(kind, ""), priority, nodes, cpus, speed)


def write(settings: Settings, folder: Path, port: int) -> Path:
    """Write ``slurm.conf`` into the folder of a cluster; return its path."""
    lines = [
        f"{key}={value}"
        for key, value in (general(folder, port, settings.speed) | settings.lines()).items()
    ]
    lines += [
        f"{node_line(name, port + 1 + node)} CPUs={settings.cpus_per_node}"
        for node, name in enumerate(settings.node_names)
    ]
    lines += [
        f"PartitionName={name} Nodes=n[0-{settings.n_nodes - 1}] PriorityJobFactor={factor} "
        f"Default={'YES' if name == 'p' else 'NO'} MaxTime=INFINITE State=UP"
        for name, factor in settings.partitions()
    ]
    path = folder / "slurm.conf"
    path.write_text("\n".join(lines) + "\n")
    return path


def node_line(name: str, port: int) -> str:
    """Return the begin of the line of a node, which is a daemon on this machine."""
    return f"NodeName={name} NodeHostname={_host()} NodeAddr=127.0.0.1 Port={port} State=UNKNOWN"


def _host() -> str:
    return socket.gethostname().split(".")[0]


def general(folder: Path, port: int, speed: int) -> dict[str, str]:
    """Return the lines that every cluster has.

    Every daemon listens on 127.0.0.1 alone, from `port` on. Limits of communication are long, as
    they are read from the daemons' clock, which may run faster.
    """
    user = getpass.getuser()
    return {
        "ClusterName": "replay",
        "SlurmctldHost": f"{_host()}(127.0.0.1)",
        "SlurmctldPort": str(port),
        "SlurmUser": user,
        "SlurmdUser": user,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge.socket,cred_expire=36000",
        "CredType": "cred/munge",
        "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
        "StateSaveLocation": f"{folder}/state",
        "SlurmdSpoolDir": f"{folder}/spool/%n",
        "SlurmctldPidFile": f"{folder}/slurmctld.pid",
        "SlurmdPidFile": f"{folder}/spool/%n.pid",
        "SlurmctldLogFile": f"{folder}/slurmctld.log",
        "SlurmdLogFile": f"{folder}/spool/%n.log",
        "SlurmctldDebug": "info",
        "SlurmdDebug": "error",
        "LogTimeFormat": "iso8601_ms",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": f"{folder}/jobcomp.txt",
        "MailProg": "/bin/true",
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "ReturnToService": "2",
        "SlurmdParameters": "config_overrides",
        "SlurmdTimeout": "0",
        "InactiveLimit": "0",
        "MessageTimeout": str(60 * speed),
        "TCPTimeout": str(10 * speed),
        "BatchStartTimeout": str(60 * speed),
    }
