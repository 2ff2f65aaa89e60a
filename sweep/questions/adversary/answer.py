"""Answer of an adversary: a workload, a timeline, a sentence, and what they came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sim.base import files
from sim.base.errors import InputError
from sim.workload.workload import Workload
from sweep.grid import plugins
from sweep.questions.adversary.instances import size
from sweep.questions.adversary.search import Loss
from sweep.stats.metric_format import style, value_text

INSTANCE, TIMELINE, RECORD = "instance", "timeline.html", "adversary.json"


def sentence(loss: Loss) -> str:
    """Say where the policy loses, and by how much."""
    question, (own, other) = loss.question, loss.values
    n_jobs, n_tasks, n_edges = size(loss.jobs)
    counts = ", ".join(
        f"{n:,} {word}{'s' * (n != 1)}"
        for n, word in ((n_jobs, "job"), (n_tasks, "task"), (n_edges, "edge"))
        if n or word != "edge"
    )
    if loss.ratio <= 1:
        text = f"{question.policy} loses to {question.against} on no instance that was tried"
    else:
        text = (
            f"{question.policy}'s {style(question.metric).label} is {loss.ratio:.3g} times "
            f"{'worse than ' if style(question.metric).better == 'higher' else ''}"
            f"{question.against}'s"
        )
    cut = "; the time was over before the search was" if loss.is_cut else ""
    return (
        f"{text}: {value_text(question.metric, own)} against {value_text(question.metric, other)}, "
        f"with {counts} on {loss.world.cluster.describe()} ({loss.n_runs:,} instances tried, seed "
        f"{question.seed}{cut})."
    )


def write(loss: Loss, folder: str | Path) -> list[Path]:
    """Write ``instance/``, a timeline of both policies, and a record; return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    Workload.from_jobs(loss.jobs).write(folder / INSTANCE)
    paths = [folder / INSTANCE]
    drawn = _draw(loss)
    if drawn is not None:
        drawn.write(folder / TIMELINE)
        paths.append(folder / TIMELINE)
    files.write_text(folder / RECORD, json.dumps(record(loss), indent=1) + "\n")
    return [*paths, folder / RECORD]


def record(loss: Loss) -> dict[str, Any]:
    """Return what was asked and found, for a program."""
    question, world = loss.question, loss.world
    config = None if world.cell is None else world.cell.cluster
    return {
        "policy": question.policy,
        "against": question.against,
        "metric": question.metric,
        "ratio": loss.ratio,
        "values": list(loss.values),
        "worst_ratio": loss.worst_ratio,
        "drawn_ratio": loss.drawn_ratio,
        "instances": loss.n_runs,
        "seed": question.seed,
        "is_cut": loss.is_cut,
        "trace": world.name,
        "trace_seed": world.seed,
        "cluster": {
            "description": world.cluster.describe(),
            "machines": world.cluster.n_machines,
            "capacity": world.cluster.capacity.tolist(),
            "resources": list(world.cluster.resources),
            "config": config,
        },
        "sentence": sentence(loss),
        "jobs": loss.jobs,
    }


def _draw(loss: Loss) -> Any:
    """Draw both runs; None if nothing draws."""
    plug_in = plugins.having(plugins.SECTIONS, "draw")
    try:
        return None if plug_in is None else plug_in.draw(loss.duel.runs(loss.jobs))
    except InputError:
        return None
