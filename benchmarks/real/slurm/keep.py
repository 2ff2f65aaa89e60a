"""Copy of finished runs into the project, as test data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

INDEX = "runs.json"
_OF_A_RUN = ("took_s", "cores_busy")


def keep(out: Path, target: Path) -> int:
    """Copy the tables and Slurm's own logs of finished runs; return how many there are.

    ``runs.json`` has the settings, by workload and settings' name, and each run's length and load.
    """
    target.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {}
    runs: dict[str, Any] = {}
    for path in sorted(out.glob("*/*/*/*.json")):
        for ending in (".csv.gz", ".jobcomp.txt.gz"):
            shutil.copyfile(path.with_name(path.stem + ending), target / f"{path.stem}{ending}")
        content = json.loads(path.read_text())
        runs[path.stem] = {name: content.pop(name) for name in _OF_A_RUN}
        settings[path.stem.rpartition("-")[0]] = content
    lines = [f"{json.dumps(name)}: {json.dumps(runs[name])}" for name in runs]
    groups = [f"{json.dumps(name)}: {json.dumps(settings[name])}" for name in settings]
    text = (
        '{"settings": {\n' + ",\n".join(groups) + '\n},\n"runs": {\n' + ",\n".join(lines) + "\n}}\n"
    )
    (target / INDEX).write_text(text)
    return len(runs)


def n_cpus(target: Path, group: str) -> int:
    """Return the CPUs of the cluster of some kept runs, by workload and settings' name."""
    settings = json.loads((target / INDEX).read_text())["settings"][group]
    return int(settings["n_nodes"] * settings["cpus_per_node"])
