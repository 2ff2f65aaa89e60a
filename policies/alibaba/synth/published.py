"""Fit probability tables to a workload, or to the histograms published with the generator.

The latter are JSON (may be gzipped): ``{name: {counts, bins}}`` with raw counts over the whole of
cluster-trace-v2018; the value of count i is ``bins[i + 1]``. The trace calls a stage a task, and a
task an instance.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.base.reading import parse_json, read_bytes
from sim.dags import Graphs
from sim.synth.fitted.fit import fit_workload, stage_attributes
from sim.synth.fitted.fit_joint import fit_joint
from sim.synth.fitted.fit_links import ObservedDags, fit_links
from sim.synth.fitted.histograms import Conditional, Histogram
from sim.synth.fitted.tables import Tables
from sim.workload.workload import Workload


def fit(
    source: str | os.PathLike[str],
    sample: str | os.PathLike[str] | None = None,
    note: str | None = None,
) -> Tables:
    """Fit tables to the workload in a folder, or read them from the published histograms."""
    path = Path(source)
    if path.is_dir():
        if sample is not None:
            raise InputError(
                "a sample is only for the published histograms; a workload's folder needs none",
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
    """Add edges and the joint distribution of attributes, fitted to a sample of the trace."""
    if set(sample.resources) != set(tables.demand):
        raise InputError(
            f"the sample's resources are {', '.join(sample.resources)}, those of the tables "
            f"{', '.join(tables.demand)}; they must be the same",
            rule="other resources",
        )
    graphs = Graphs.from_workload(sample)
    attributes = stage_attributes(sample)
    metrics = {name: attributes[name] for name in tables.attributes}
    is_whole = np.ones(sample.n_jobs, dtype=bool)
    if "n_lost" in sample.jobs.column_names:
        is_whole = sample.jobs["n_lost"].to_numpy() == 0
    provenance = {
        "source": note or f"workload {sample.meta.get('name', '')}".strip(),
        "input_sha256": sample.digest,
    }
    links = fit_links(ObservedDags.observe(graphs.take(is_whole)), tables)
    joint = fit_joint(graphs, metrics) if graphs.n_edges else None
    return replace(
        tables,
        links=replace(links, provenance={**provenance, **links.provenance}),
        joint=joint and replace(joint, provenance={**provenance, **joint.provenance}),
    )


SOURCE = (
    "raw-count histograms over Alibaba cluster-trace-v2018 (2.86 M jobs), published under the MIT "
    "licence with the generator of Tian et al., Characterizing and synthesizing task dependencies "
    "of data-parallel jobs in Alibaba cloud, SoCC 2019"
)


def fit_published(path: Path) -> Tables:
    """Make tables from the published histograms.

    A stage's duration is drawn from ``task_duration``, which counts stages, not tasks. Negative
    values are dropped, and counts, lengths and levels below 1; 0 s becomes 0.5 s, as the trace's
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
        duration_s=Histogram.count(np.where(zero, 0.5, duration.values), duration.counts),
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
                f"{name}: one table for {max(map(int, raw[key]))} {unit} and more"
                for name, key, unit in (("length", "cpl", "stages"), ("level", "level", "levels"))
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
    """Content of the file, and counts of the values dropped so far."""

    raw: dict[str, Any]
    path: Path
    dropped: dict[str, int] = field(default_factory=dict)

    def histogram(self, name: str, minimum: float) -> Histogram:
        return self._table(self.raw.get(name), name, minimum)

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

    def _table(self, part: Any, label: str, minimum: float) -> Histogram:
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
        valid = values >= minimum
        if not valid.all():
            self.dropped[f"{label} below {minimum:g}"] = int(counts[~valid].sum())
        if (counts < 0).any() or not counts[valid].any():
            raise InputError(
                f"histogram {label!r} needs a value of at least {minimum:g} with a count above 0, "
                "and no negative counts",
                file=self.path,
            )
        return Histogram.count(values[valid], counts[valid])


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
