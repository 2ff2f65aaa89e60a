"""Changes made in reality as what-ifs of a twin, by the options of ``python -m sweep``.

Where there is no option for a change, the lists of the twin's cluster are set: what an
administrator would edit in ``cluster/site.yaml``.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sweep
from benchmarks.real.slurm.sites import shape, submissions
from sim.cli.main import main as sim_main
from sim.traces.sites.site import Site
from sim.traces.slurm_site.hosts import expand
from sim.traces.slurm_site.site import read_site
from sim.workload.node_names import expand as names_of

KEY = "what_if."


def waits_s(folder: Path, change: str, n_seeds: int) -> tuple[float, float]:
    """Return the mean wait of a run's twin as it is, and changed, s.

    Raises
    ------
    RuntimeError
        If a simulation failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        twin = Path(scratch) / "twin"
        with contextlib.redirect_stdout(io.StringIO()):
            sim_main(["site", str(folder), "--out", str(twin)])
            done = sweep.run(
                "trace=site", "policy=site", word(change, folder),
                "what_if.restore=null", f"seed=range(0,{n_seeds})", "launcher=inline",
                "tracking=none", f"paths.results={scratch}", config_dir=str(twin),
            )  # fmt: skip
        cells = done.cells
    column = next(name for name in cells.columns if name.startswith(KEY))
    is_today = cells[column].isna()
    if (cells["status"] == "failed").any() or is_today.sum() != n_seeds:
        raise RuntimeError(f"{folder.name}, {change}: a simulation failed")
    by_change = cells.groupby(is_today)["wait_mean_s"].mean()
    return float(by_change[True]), float(by_change[False])


def word(change: str, folder: Path) -> str:
    """Return the option that makes a change of `benchmarks.real.slurm.sites.changes`."""
    kind, *words = change.split(":")
    if kind == "limit":
        return f"{KEY}limit={words[0]}:{words[1]}"
    if kind == "twice":
        return f"{KEY}load=user={words[0]}:2"
    if kind == "qos":
        name = words[1].replace("PerUser", "PU")
        return f"{KEY}qos='{words[0]}:{name}={words[2]}'"
    site = read_site(folder)
    if kind == "nodes":
        return f"{KEY}cluster.shape={_flow(more_nodes(site, *words))}"
    if kind == "move":
        return f"{KEY}cluster.shape={_flow(moved(site, *words))}"
    return f"{KEY}cluster.reservations={_flow(with_maintenance(site, folder, *words))}"


def more_nodes(site: Site, prefix: str, n: str) -> list[dict[str, Any]]:
    """Return the kinds of machines with more like the last node of that name."""
    kinds = _kinds(site)
    last = [kind for kind in kinds if kind["nodes"].startswith(prefix)][-1]
    last["count"] += int(n)
    del last["nodes"]
    return kinds


def moved(site: Site, nodes: str, source: str, target: str) -> list[dict[str, Any]]:
    """Return the kinds of machines in which nodes are of other partitions."""
    chosen, kinds = expand(nodes), []
    for kind in _kinds(site):
        names = names_of(kind.pop("nodes"))
        for is_moved in (False, True):
            mine = [name for name in names if (name in chosen) == is_moved]
            if not mine:
                continue
            own = [p for p in kind["partitions"] if not is_moved or p.strip("*") != source]
            own += [target] if is_moved and target and target not in own else []
            kinds.append({**kind, "count": len(mine), "partitions": own})
    return kinds


def with_maintenance(
    site: Site, folder: Path, nodes: str, from_s: str, until_s: str, announced_s: str
) -> list[dict[str, Any]]:
    """Return the reservations with one more."""
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    zero_s = submissions.generate(shape.read(about["shape"]), about["seed"])[0].at_s
    machines = {node.name: i for i, node in enumerate(site.nodes)}
    row = {
        "name": "added", "machine": [machines[name] for name in expand(nodes)],
        "from_s": float(from_s) - zero_s, "until_s": float(until_s) - zero_s, "users": ["root"],
        "announced_s": max(float(announced_s) - zero_s, 0.0),
    }  # fmt: skip
    return [*site.cluster.get("reservations", ()), row]


def _kinds(site: Site) -> list[dict[str, Any]]:
    kinds: list[Mapping[str, Any]] = site.cluster["shape"]
    return [dict(kind) for kind in kinds]


def _flow(value: Any) -> str:
    """Write a list of mappings as Hydra's grammar has it."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_flow, value)) + "]"
    return f"'{value}'" if isinstance(value, str) else str(value)
