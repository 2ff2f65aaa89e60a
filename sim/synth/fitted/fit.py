"""Probability tables from any workload, or from the histograms published with the generator.

The latter are JSON (may be gzipped): ``{name: {counts, bins}}`` with raw counts over the whole of
cluster-trace-v2018; the value of count i is ``bins[i + 1]``. In the trace's words a task is what
this project calls a stage, and an instance a task.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.reading import parse_json, read_bytes
from sim.dags import Graphs
from sim.synth.fitted.arrivals import fit_arrivals
from sim.synth.fitted.draw_joint import longest_over_mean
from sim.synth.fitted.fit_joint import fit_joint
from sim.synth.fitted.fit_links import Seen, fit_links
from sim.synth.fitted.fit_sizes import fit_by_size
from sim.synth.fitted.histograms import Conditional, Histogram, pooled_conditional
from sim.synth.fitted.tables import Tables
from sim.workload.workload import Workload

MOST_VALUES = 16_384
"""A table of more distinct values keeps three significant digits of them."""
ALIKE = 1.0 + 1e-9
"""By so much tasks that last the same may differ."""


def fit(
    source: str | os.PathLike[str],
    sample: str | os.PathLike[str] | None = None,
    note: str | None = None,
) -> Tables:
    """Make tables from the folder of a workload, or from the file of published histograms."""
    path = Path(source)
    if path.is_dir():
        if sample is not None:
            raise InputError(
                "a sample goes with the published histograms; a workload tells everything itself",
                file=path,
            )
        return fit_workload(Workload.read(path))
    if not path.exists():
        raise InputError(
            "no such file or folder; give a workload's folder or the published histograms",
            file=path,
        )
    tables = fit_published(path)
    return tables if sample is None else fit_sample(tables, Workload.read(sample), note)


def fit_sample(tables: Tables, sample: Workload, note: str | None = None) -> Tables:
    """Add what a sample tells of edges, and of what attributes have to do with each other."""
    if set(sample.resources) != set(tables.demand):
        raise InputError(
            f"the sample demands {', '.join(sample.resources)}, the tables "
            f"{', '.join(tables.demand)}",
            rule="other resources",
        )
    graphs = Graphs.of(sample)
    attributes = _attributes(sample)
    metrics = {name: attributes[name] for name in tables.attributes}
    whole = np.ones(sample.n_jobs, dtype=bool)
    if "n_lost" in sample.jobs.column_names:
        whole = sample.jobs["n_lost"].to_numpy() == 0
    provenance = {
        "source": note or f"workload {sample.meta.get('name', '')}".strip(),
        "input_sha256": sample.digest,
    }
    links = fit_links(Seen.of(graphs.take(whole)), tables)
    joint = fit_joint(graphs, metrics) if graphs.n_edges else None
    return replace(
        tables,
        links=replace(links, provenance={**provenance, **links.provenance}),
        joint=joint and replace(joint, provenance={**provenance, **joint.provenance}),
    )


def fit_structure(graphs: Graphs, tables: Tables, own: bool = True) -> Tables:
    """Fit what DAGs are synthesized from, and nothing else."""
    seen = Seen.of(graphs)
    if own:
        pooled: list[str] = []
        tables = replace(
            tables,
            n_stages=Histogram.of(graphs.job_n_stages),
            **_conditionals(seen, pooled),
            provenance={**tables.provenance, "pooled": pooled},
        )
    return replace(tables, links=fit_links(seen, tables))


def fit_workload(workload: Workload, joint: bool = True) -> Tables:
    """Count a workload's tables; a stage whose tasks differ counts with their mean duration.

    What stages have together takes most of the time; without it jobs are drawn independently.
    """
    if workload.n_jobs < 2:
        raise InputError(
            f"a fit needs at least 2 jobs (for one interval between them), not {workload.n_jobs}"
        )
    graphs = Graphs.of(workload)
    seen = Seen.of(graphs)
    metrics = _attributes(workload)
    pooled: list[str] = []
    changed: dict[str, str] = {}

    def counted(name: str, values: NDArray[Any]) -> Histogram:
        histogram = Histogram.of(values)
        if len(histogram.values) > MOST_VALUES:
            changed[name] = f"{len(histogram.values)} values rounded to three significant digits"
            histogram = Histogram.of(_three_digits(histogram.values), histogram.counts)
        return histogram

    submit_s = workload.jobs["submit_s"].to_numpy()
    tables = Tables(
        n_stages=Histogram.of(graphs.job_n_stages),
        **_conditionals(seen, pooled),
        n_tasks=counted("n_tasks", metrics["n_tasks"]),
        duration_s=counted("duration_s", metrics["duration_s"]),
        interval_s=counted("interval_s", np.diff(submit_s)),
        demand={
            name: counted(f"demand {name}", metrics[f"demand {name}"])
            for name in workload.resources
        },
        longest=counted("longest", metrics["longest"]) if "longest" in metrics else None,
        arrivals=fit_arrivals(submit_s),
        quantum=dict(workload.quantum),
        provenance={
            "made_by": "python -m sim fit",
            "source": f"workload {workload.meta.get('name', '')}".strip(),
            "input_sha256": workload.digest,
            "counted": {"jobs": workload.n_jobs, "stages": workload.n_stages},
            "changed": changed,
            "pooled": pooled,
        },
    )
    tables.check()
    by_size = fit_by_size(graphs, metrics, counted) if joint else None
    return replace(tables, links=fit_links(seen, tables), by_size=by_size)


def _conditionals(seen: Seen, pooled: list[str]) -> dict[str, Any]:
    """Count the tables of lengths and levels."""
    n_stages, owner = seen.graphs.job_n_stages, seen.graphs.stage_job
    return {
        "length": pooled_conditional("length", n_stages, seen.lengths, pooled, "jobs"),
        "level": pooled_conditional("level", seen.lengths, seen.levels, pooled, "jobs", owner),
    }


def _attributes(workload: Workload) -> dict[str, F8]:
    """Return what each stage has, in the order of `Tables.attributes`."""
    stages = workload.stages
    longest = {}
    if workload.stage_duration_s is None:
        ratio = longest_over_mean(workload.tasks["duration_s"].to_numpy(), workload.stage_task0)
        longest = {"longest": ratio} if (ratio > ALIKE).any() else {}
    return {
        "duration_s": _stage_duration_s(workload),
        "n_tasks": stages["n_tasks"].to_numpy().astype(np.float64),
        **{f"demand {name}": stages[f"demand_{name}"].to_numpy() for name in workload.resources},
        **longest,
    }


def _stage_duration_s(workload: Workload) -> F8:
    if workload.stage_duration_s is not None:
        return workload.stage_duration_s
    task0 = workload.stage_task0
    work = np.add.reduceat(workload.tasks["duration_s"].to_numpy(), task0[:-1])
    return work / np.diff(task0)


LOG_10 = 2.302585092994046


def _three_digits(values: F8) -> F8:
    step = maths.power(10.0, np.floor(maths.log(np.maximum(values, 1e-12)) / LOG_10 + 1e-12) - 2)
    rounded: F8 = np.round(values / step) * step
    return np.round(rounded, 12)


SOURCE = (
    "raw-count histograms over Alibaba cluster-trace-v2018 (2.86 M jobs), published under the MIT "
    "licence with the generator of Tian et al., Characterizing and synthesizing task dependencies "
    "of data-parallel jobs in Alibaba cloud, SoCC 2019"
)


def fit_published(path: Path) -> Tables:
    """Make tables from the published histograms.

    A stage's duration is drawn from ``task_duration``, which counts stages, not tasks. A negative
    value is dropped, and so is a count, a length or a level below 1; 0 s is 0.5 s, as the trace's
    clock ticks in seconds.
    """
    content, raw = _read(path)
    source = _Source(raw, path)
    duration = source.histogram("task_duration", 0)
    cpu = source.histogram("task_cpu", 0)
    zero = duration.values == 0
    tables = Tables(
        n_stages=source.histogram("task_num", 1),
        length=source.conditional("cpl"),
        level=source.conditional("level"),
        n_tasks=source.histogram("instance_num", 1),
        duration_s=Histogram.of(np.where(zero, 0.5, duration.values), duration.counts),
        interval_s=source.histogram("job_interval", 0),
        demand={
            "cpu": Histogram(cpu.values / 100, cpu.counts),
            "mem": source.histogram("task_mem", 0),
        },
        quantum={"cpu": 0.01, "mem": 0.01},
        provenance={
            "made_by": f"python -m sim fit {path.name}",
            "source": SOURCE,
            "input_sha256": hashlib.sha256(content).hexdigest(),
            "units": {"cpu": "cores", "mem": "percent of a machine's memory"},
            "machine": {"cpu": 96.0, "mem": 100.0},
            "dropped": source.dropped,
            "changed": {"duration_s 0 made 0.5": int(duration.counts[zero].sum())},
            "pooled": [
                f"{name}: one table for {max(map(int, raw[key]))} {what} and more"
                for name, key, what in (("length", "cpl", "stages"), ("level", "level", "levels"))
            ],
        },
    )
    try:
        tables.check()
    except InputError as error:
        raise InputError(error.message, file=path, rule=error.rule) from error
    return tables


@dataclass(frozen=True)
class _Source:
    """The file's content, and what was dropped of it so far."""

    raw: dict[str, Any]
    path: Path
    dropped: dict[str, int] = field(default_factory=dict)

    def histogram(self, name: str, least: float) -> Histogram:
        return self._table(self.raw.get(name), name, least)

    def conditional(self, name: str) -> Conditional:
        cells = self.raw.get(name)
        if not isinstance(cells, dict) or not cells or not all(key.isdigit() for key in cells):
            raise InputError(
                f"histogram {name!r} must be {{whole number: {{counts, bins}}}}", file=self.path
            )
        keys = sorted(cells, key=int)
        return Conditional(
            {int(key): self._table(cells[key], f"{name} given {key}", 1) for key in keys}
        )

    def _table(self, part: Any, label: str, least: float) -> Histogram:
        try:
            values = np.asarray(part["bins"], dtype=np.float64)[1:]
            counts = np.asarray(part["counts"], dtype=np.float64)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"histogram {label!r} is missing or not {{counts, bins}}", file=self.path
            ) from error
        if values.shape != counts.shape or not np.isfinite(values).all() or (counts % 1 != 0).any():
            raise InputError(
                f"histogram {label!r} needs one whole count for each bin after the first",
                file=self.path,
            )
        good = values >= least
        if not good.all():
            self.dropped[f"{label} below {least:g}"] = int(counts[~good].sum())
        if (counts < 0).any() or not counts[good].any():
            raise InputError(
                f"histogram {label!r} must count something of at least {least:g}, and nothing "
                "less than 0 times",
                file=self.path,
            )
        return Histogram.of(values[good], counts[good])


def _read(path: Path) -> tuple[bytes, dict[str, Any]]:
    try:
        content = path.read_bytes()
        text = read_bytes(path) if content else content
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from error
    try:
        raw = parse_json(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not JSON: {error}", file=path, line=line) from error
    if not isinstance(raw, dict):
        raise InputError("must hold {name: {counts, bins}}", file=path)
    return content, raw
