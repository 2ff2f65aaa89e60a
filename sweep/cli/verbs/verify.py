"""Whether a sweep's numbers come out again."""

from __future__ import annotations

import argparse
import hashlib
import math

from sim.base.errors import InputError
from sim.base.masking import mask_tree
from sweep.cli.command import NOTHING_ELSE, Command, asked_again
from sweep.grid import clusters, grid
from sweep.run import plan
from sweep.run.cell import run_cell
from sweep.run.plan import Planned, Prepared
from sweep.store.cache import Cache
from sweep.store.cell import CellResult, CellSpec


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [SWEEP] [--cells K] [--seed N] [paths.results=DIR] [flags]"
    parser.add_argument("--cells", type=int, default=5, metavar="K", help="how many (default 5)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which ones (default 0)")
    parser.epilog = NOTHING_ELSE


def verify(command: Command) -> int:
    """Run random cells of a sweep again, in this process, and compare every bit."""
    if command.flags.cells < 1:
        raise InputError(f"--cells must be at least 1, not {command.flags.cells}")
    folder, request = asked_again(command)
    recorded = folder.cells().select(["status", "key"]).to_pylist()
    prepared = plan.prepare(grid.build(request))
    done = [row for row, cell in enumerate(recorded) if cell["status"] != "failed"]
    if len(recorded) != len(prepared.planned):
        raise InputError(
            f"{folder.sweep} has {len(recorded)} cells, its configuration gives "
            f"{len(prepared.planned)} now; did an experiment's file change?"
        )
    if not done:
        raise InputError(f"every cell of {folder.sweep} failed; nothing can be compared")
    n_wrong = 0
    for row in _sample(done, command.flags.cells, command.flags.seed):
        planned = prepared.planned[row]
        verdict, is_same = _verify(prepared, planned, recorded[row]["key"])
        n_wrong += not is_same
        labels = " ".join(f"{value}" for value in mask_tree(planned.cell.labels).values())
        print(f"row {row}: {labels}: {verdict}")
    n_run = min(command.flags.cells, len(done))
    print(f"{n_run - n_wrong} of {n_run} cells are the same, bit for bit")
    return 1 if n_wrong else 0


def _sample(rows: list[int], n: int, seed: int) -> list[int]:
    """Choose rows by a hash, so that the same seed always means the same ones."""
    ranked = sorted(rows, key=lambda row: hashlib.sha256(f"{seed}:{row}".encode()).digest())
    return sorted(ranked[:n])


def _verify(prepared: Prepared, planned: Planned, key: str) -> tuple[str, bool]:
    kept = Cache(prepared.grid.request.settings.results).get(key)
    if kept is None:
        return "differs: its result is no longer in the cache, or damaged", False
    workload = prepared.inputs.workload(planned.input)
    sized = clusters.size(workload, planned.cell.cluster, planned.cell.capacity)
    again = run_cell(
        workload, CellSpec(key, planned.cell.policy, sized, planned.cell.measure, planned.cell.seed)
    )
    since = "" if planned.key == key else " (sources or input changed since)"
    if again.error is not None:
        return f"differs: fails now: {again.error['message']}{since}", False
    differences = _differences(kept, again)
    if differences:
        return f"differs in {', '.join(differences)}{since}", False
    return f"same{since}", True


def _differences(old: CellResult, new: CellResult) -> list[str]:
    names = dict.fromkeys((*old.metrics, *new.metrics))
    absent = math.inf
    wrong = [
        f"{name} ({old.metrics.get(name)!r} → {new.metrics.get(name)!r})"
        for name in names
        if repr(old.metrics.get(name, absent)) != repr(new.metrics.get(name, absent))
    ]
    assert old.jobs is not None
    assert new.jobs is not None
    for column in old.jobs.column_names:
        before, now = old.jobs[column].to_numpy(), new.jobs[column].to_numpy()
        if before.tobytes() != now.tobytes():
            wrong.append(f"column {column}")
    return wrong
