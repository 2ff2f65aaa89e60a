"""A site that was read: its jobs, cluster and scheduler, and the options that stand for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sim.traces.sites.flow_yaml import dump
from sim.workload.workload import Workload

MAX_NAMES = 1000
"""Letters of the list of nodes in a comment."""
QUEUE = "_queue"
"""Ending of the options of a queue."""


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
    queue : Workload or None
        Its jobs that ended, run and wait now, with ``now_s`` in ``meta``; None without a queue.
    queue_cluster : dict
        Its cluster as of then, whose times count from the first submission of `queue`.
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
    queue: Workload | None = None
    queue_cluster: dict[str, Any] = field(default_factory=dict)


def write_site(site: Site, out: Path, name: str) -> list[Path]:
    """Write the options, the jobs and the notes of a site; return the files and folders.

    ``--config-dir OUT`` finds ``cluster/NAME.yaml``, ``policy/NAME.yaml`` and ``trace/NAME.yaml``.
    ``cluster.yaml`` and ``policy.yaml`` are links to the first two, where links can be made.
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
    write(
        f"policy/{name}.yaml",
        dump(site.policy, {"name": f"The scheduler of a site of {site.scheduler}."}),
    )
    write(f"cluster/{name}.yaml", _cluster_text(site, site.cluster, shape))
    logs = [(name, "workload", site.workload, "Jobs")]
    if site.queue is not None:
        write(f"cluster/{name}{QUEUE}.yaml", _cluster_text(site, site.queue_cluster, shape))
        logs.append((f"{name}{QUEUE}", "queue", site.queue, "Queue"))
    for option, folder, workload, noun in logs:
        if workload is None:
            continue
        workload.write(out / folder)
        written.append(out / folder)
        lines = ["defaults:", f"  - override /cluster@_global_.cluster: {option}", "  - _self_"]
        text = dump({"format": "parquet", "path": str(out / folder)}, {})
        head = f"# {noun} of a site of {site.scheduler}.\n"
        write(f"trace/{option}.yaml", head + "\n".join(lines) + "\n" + text)
    write("not_understood.txt", "\n".join(site.notes) + "\n" if site.notes else "")
    linked = [group for group in LINKED if _link(out / f"{group}.yaml", f"{group}/{name}.yaml")]
    return [*written, *(out / f"{group}.yaml" for group in linked)]


LINKED = ("cluster", "policy")
"""Groups of options with a link to the site's own beside them."""


def _link(link: Path, target: str) -> bool:
    """Make a relative link, in place of an older one; False if there is none then."""
    try:
        if link.is_symlink():
            link.unlink()
        link.symlink_to(target)
    except OSError:  # no links here, or a file of that name
        return False
    return True


def _cluster_text(site: Site, cluster: Mapping[str, Any], shape: str) -> str:
    return dump({"defaults": ["slots", "_self_"], **cluster}, {**site.comments, "shape": shape})


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_NAMES else text[:MAX_NAMES].rpartition(",")[0] + ", ..."
