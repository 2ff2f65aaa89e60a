"""A folder of a site's exports: its files, and notes on what is missing or not understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sim.base.errors import InputError
from sim.traces.sites.notes import Notes
from sim.traces.sites.pseudonyms import Pseudonyms
from sim.traces.slurm_site.shown import read_scontrol, read_table
from sim.traces.slurm_site.slurm_conf import (
    Conf,
    Record,
    is_empty,
    packed,
    read_records,
    read_slurm_conf,
)

JOBS = "sacct.txt"
FILES: Mapping[str, str] = {
    "slurm.conf": "scheduler options, priority weights, partitions and nodes; nodes and partitions "
    "are then those of nodes.txt and partitions.txt, and the policy is Slurm's as shipped",
    "gres.conf": "models of GPUs, where slurm.conf and nodes.txt do not name them",
    "nodes.txt": "the nodes as the controller sees them; those of slurm.conf count",
    "partitions.txt": "changes to partitions since slurm.conf was read",
    "reservation.txt": "advance reservations and maintenance: jobs start as if there were none",
    "qos.txt": "priorities, limits and preemption of QOS: none of them holds",
    "assoc.txt": "shares, limits and the tree of accounts: all shares are equal, no limit holds",
    "events.txt": "times at which nodes were down or drained: all are up throughout, but for "
    "drains that slurmctld.log tells",
    "sdiag.txt": "how long the controller's plans take: 0.01 s",
    "slurmctld.log": "drains that sacctmgr show event does not list; when reservations were made",
    JOBS: "jobs",
}
"""Files of a site, and what is lost without them."""
TOPOLOGY = "topology.conf"
"""Switches above nodes; a site whose plugin is another one has none."""


@dataclass
class Folder:
    """Parsed files of a site.

    Attributes
    ----------
    path : Path
        The folder.
    files : dict of str to Path
        The files that exist and, but for the jobs, are not empty, by name.
    conf : Conf
        ``slurm.conf``, empty if it is missing.
    gres, switches : list of Record
        ``gres.conf`` and ``topology.conf``.
    nodes, partitions, reservations : dict of str to Record
        What ``scontrol show`` printed, by name.
    qos, assoc, events : list of Record
        Tables of ``sacctmgr``.
    pseudonyms : Pseudonyms
        Aliases of users, accounts and names of jobs.
    notes : Notes
    """

    path: Path
    files: dict[str, Path]
    conf: Conf
    gres: list[Record]
    switches: list[Record]
    nodes: dict[str, Record]
    partitions: dict[str, Record]
    reservations: dict[str, Record]
    qos: list[Record]
    assoc: list[Record]
    events: list[Record]
    pseudonyms: Pseudonyms
    notes: Notes


def read_folder(path: Path, pseudonyms: Pseudonyms | None = None) -> Folder:
    """Read the files of a site, all of which but ``sacct.txt`` may be missing, or empty.

    Raises
    ------
    InputError
        If there is no such folder, or it has neither ``slurm.conf`` nor ``nodes.txt``; or of a
        file's content.
    """
    if not path.is_dir():
        raise InputError(f"{path} is no folder; give one with {', '.join(FILES)}", rule="no folder")
    files: dict[str, Path] = {}
    notes = Notes()
    for name, loss in FILES.items():
        file = packed(path / name)
        if file is not None and (name == JOBS or not is_empty(file)):
            files[name] = file
        else:
            notes.add("missing", name, loss)
    if "slurm.conf" not in files and "nodes.txt" not in files:
        raise InputError(
            f"{path} has neither slurm.conf nor nodes.txt, which tell the nodes; write the latter "
            "with scontrol show node -o",
            rule="no nodes",
        )
    topology = packed(path / TOPOLOGY)
    conf = read_slurm_conf(files["slurm.conf"]) if "slurm.conf" in files else Conf()
    for name in conf.missing:
        notes.add("slurm.conf", f"Include {name}", "not in the folder: all that it sets")
    for line in conf.unread:
        notes.add("slurm.conf", line[:80], "no key=value")

    def shown(name: str, key: str) -> dict[str, Record]:
        return read_scontrol(files[name], key) if name in files else {}

    def table(name: str, *needed: str) -> list[Record]:
        return read_table(files[name], needed) if name in files else []

    return Folder(
        path=path,
        files=files,
        conf=conf,
        gres=read_records(files["gres.conf"]) if "gres.conf" in files else [],
        switches=read_records(topology) if topology else [],
        nodes=shown("nodes.txt", "NodeName"),
        partitions=shown("partitions.txt", "PartitionName"),
        reservations=shown("reservation.txt", "ReservationName"),
        qos=table("qos.txt", "Name"),
        assoc=table("assoc.txt", "Account", "User"),
        events=table("events.txt", "NodeName", "TimeStart", "TimeEnd"),
        pseudonyms=pseudonyms or Pseudonyms(),
        notes=notes,
    )
