"""Probability tables from the histograms that were published with the paper's generator.

The file is JSON (may be gzipped): ``{name: {counts, bins}}`` with raw counts over the whole of
cluster-trace-v2018; the value of count i is ``bins[i + 1]``. In the trace's words a task is what
this project calls a stage, and an instance a task.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.synth.alibaba2018.tables import Conditional, Histogram, Tables, check_tables

SOURCE = (
    "raw-count histograms over Alibaba cluster-trace-v2018 (2.86 M jobs), published under the MIT "
    "licence with the generator of Tian et al., Characterizing and synthesizing task dependencies "
    "of data-parallel jobs in Alibaba cloud, SoCC 2019"
)


def fit_published(path: Path) -> Tables:
    """Make tables from the published histograms.

    Jobs come from ``task_num`` and ``job_interval``, structure from ``cpl`` and ``level``, and the
    attributes of stages from ``instance_num``, ``task_duration``, ``task_cpu`` (1/100 core, made
    cores here) and ``task_mem`` (normalised). A stage's duration is drawn from ``task_duration``,
    which counts stages, and not from ``instance_duration``, which counts each stage as often as it
    has tasks and so tells of the few widest ones. Rules: a negative value is dropped, and so is a
    count of stages or tasks, a length or a level below 1; a duration of 0 s is 0.5 s, as the
    trace's clock ticks in seconds.
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
    check_tables(tables, path)
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
            np.array([int(key) for key in keys], dtype=np.int64),
            tuple(self._table(cells[key], f"{name} given {key}", 1) for key in keys),
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
        raw = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"the gzip file is damaged: {error}", file=path) from error
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from error
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not JSON: {error}", file=path, line=line) from error
    if not isinstance(raw, dict):
        raise InputError("must hold {name: {counts, bins}}", file=path)
    return content, raw
