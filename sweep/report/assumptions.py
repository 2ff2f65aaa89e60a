"""Assumptions of a sweep in sentences: workload, load, knowledge of the policies, cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from sweep.report.table import knowledge
from sweep.report.wording import MAX_NAMES, joined, names
from sweep.stats.summary import Summary
from sweep.stats.verdict import Verdict

MAX_WORD = 60
"""Most characters of a word of the command line that are quoted."""


def assumptions(
    summary: Summary,
    verdicts: Sequence[Verdict],
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> list[str]:
    """Write what the results rest on, as configured and as the workloads turned out."""
    traces = list(dict.fromkeys(block.trace for block in summary.blocks))
    lines = [_workload(trace, config, provenance) for trace in traces[:2]]
    if len(traces) > 2:
        lines.append(f"{len(traces) - 2} more traces.")
    lines += _load(verdicts)
    lines += _fraction(verdicts)
    lines += [f"{line[:1].upper()}{line[1:]}." for line in knowledge(summary.columns)[:1]]
    clusters = config.get("cluster") or {}
    lines += list(dict.fromkeys(_cluster(clusters.get(trace) or {}) for trace in traces))[:2]
    fixed = [word for word in config.get("fixed") or () if not word.startswith("paths.")]
    if fixed:
        short = [word if len(word) <= MAX_WORD else f"{word[:MAX_WORD]}…" for word in fixed]
        shown = ", ".join(short[:MAX_NAMES]) + (", …" if len(fixed) > MAX_NAMES else "")
        lines.append(f"Set for this sweep: {shown}.")
    return lines


def _workload(trace: str, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> str:
    """Describe a workload: where its jobs are from, how many, and what was changed."""
    options = (config.get("trace") or {}).get(trace) or {}
    inputs = [i for i in provenance.get("inputs") or () if i.get("trace") == trace]
    source = ""
    if options.get("synth"):
        again = ", anew for each seed" if len({i.get("digest") for i in inputs}) > 1 else ""
        source = f"drawn by the generator {options['synth']}{again}"
    elif options.get("path"):
        source = f"read from {PurePath(str(options['path'])).name} ({options.get('format')})"
    parts = [_range(inputs, "n_jobs", "job"), _range(inputs, "n_tasks", "task")]
    changes = list(options.get("transforms") or ())
    parts += [source, f"changed by {names(changes)}" if changes else ""]
    about = ", ".join(filter(None, parts))
    return f"{trace}: {about}." if about else f"Trace {trace}."


def _range(inputs: Iterable[Mapping[str, Any]], key: str, noun: str) -> str:
    counts = [i[key] for i in inputs if isinstance(i.get(key), int)]
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{number} {noun}{'s' * (high != 1)}"


def _load(verdicts: Sequence[Verdict]) -> list[str]:
    loads = [v.about["offered_load"] for v in verdicts if "offered_load" in v.about]
    scales = {f"{v.about['arrival_scale']:.3g}" for v in verdicts if "arrival_scale" in v.about}
    parts = []
    if loads:
        low, high = (f"{load:.2f}" for load in (min(loads), max(loads)))
        grows = " (at 1 or more waits grow as long as jobs come)" if max(loads) >= 1 else ""
        parts.append(f"offered load {low if low == high else f'{low} to {high}'}{grows}")
    if scales - {"1"}:
        parts.append(f"arrivals stretched {joined(sorted(scales)[:3], 'or')} times")
    line = ", ".join(parts)
    return [f"{line[:1].upper()}{line[1:]}."] if line else []


def _fraction(verdicts: Sequence[Verdict]) -> list[str]:
    """Say what a fraction of a machine is, if the size of some cluster shows one."""
    shown = [n for v in verdicts for n in re.findall(r"[\d,]*\.\d+(?= machine)", v.machines)]
    if not shown:
        return []
    part = float(f"0.{shown[0].partition('.')[2]}")
    if shown[0].startswith("0."):
        return [f"The cluster is one machine with {100 * part:.2g} % of each resource."]
    return [
        "A fraction of a machine is one smaller machine: "
        f"the last of {shown[0]} has {100 * part:.2g} % of each resource."
    ]


_TROUBLES = {
    "outages": "outages of machines",
    "slowdowns": "slow periods",
    "launch_s": "start lags",
    "stage_lag_s": "lags between stages",
}


def _cluster(cluster: Mapping[str, Any]) -> str:
    """Say what of a real cluster's troubles is simulated."""
    present = [words for key, words in _TROUBLES.items() if cluster.get(key)]
    absent = [words for key, words in _TROUBLES.items() if not cluster.get(key)]
    ends = [f"with {joined(present)}"] * bool(present)
    ends += [f"without {joined(absent, 'or')}"] * bool(absent)
    return f"Simulated, not measured: {', '.join(ends)}."
