"""A site that was read: its jobs, cluster and scheduler, and the options that stand for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sim.traces.sites.flow_yaml import dump
from sim.workload.workload import Workload

MAX_NAMES = 1000
"""Letters of the list of nodes in a comment."""


class SiteNode(Protocol):
    """A node, as far as all readers know one."""

    @property
    def name(self) -> str:
        """Name."""

    @property
    def cpus(self) -> float:
        """CPUs."""

    @property
    def gpus(self) -> float:
        """GPUs."""


@dataclass(frozen=True)
class Site:
    """A site.

    Attributes
    ----------
    scheduler : str
        Name of its scheduler.
    workload : Workload or None
        Its jobs; None if there is no log.
    cluster, policy : dict
        Options as `python -m sweep` takes them.
    nodes : sequence of SiteNode
        Machine i of the cluster is the i-th of them.
    notes : list of str
        Each thing that is missing or not understood, and what it may change.
    comments : mapping of str to str
        Comments on keys of the cluster; that on ``defaults`` is on the whole file.
    log : str
        Name of the file or objects that its jobs are from.
    warnings : tuple of str
        Sentences for whoever reads it.
    """

    scheduler: str
    workload: Workload | None
    cluster: dict[str, Any]
    policy: dict[str, Any]
    nodes: Sequence[SiteNode]
    notes: list[str]
    comments: Mapping[str, str]
    log: str = ""
    warnings: tuple[str, ...] = ()


def write_site(site: Site, out: Path, name: str) -> list[Path]:
    """Write the options, the jobs and the notes of a site; return the files and folders.

    ``--config-dir OUT`` finds ``cluster/NAME.yaml``, ``policy/NAME.yaml`` and ``trace/NAME.yaml``.
    """
    written: list[Path] = []

    def write(file: str, text: str) -> None:
        path = out / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)

    names = ", ".join(f"{i} {node.name}" for i, node in enumerate(site.nodes))
    shape = site.comments["shape"]
    shape += f" Machines by number: {_shortened(names)}" if names else ""
    cluster = {"defaults": ["slots", "_self_"], **site.cluster}
    write(f"cluster/{name}.yaml", dump(cluster, {**site.comments, "shape": shape}))
    write(
        f"policy/{name}.yaml",
        dump(site.policy, {"name": f"The scheduler of a site of {site.scheduler}."}),
    )
    if site.workload is not None:
        site.workload.write(out / "workload")
        written.append(out / "workload")
        lines = ["defaults:", f"  - override /cluster@_global_.cluster: {name}", "  - _self_"]
        text = dump({"format": "parquet", "path": str(out / "workload")}, {})
        head = f"# Jobs of a site of {site.scheduler}.\n"
        write(f"trace/{name}.yaml", head + "\n".join(lines) + "\n" + text)
    write("not_understood.txt", "\n".join(site.notes) + "\n" if site.notes else "")
    return written


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_NAMES else text[:MAX_NAMES].rpartition(",")[0] + ", ..."
