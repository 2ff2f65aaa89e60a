"""Parse columns of Slurm's accounting into numbers: times, spans, memory, resources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8

MEMORY = r"(?P<number>\d{1,15}(?:\.\d+)?)(?P<unit>[KMGTP]?)(?P<per>[nc]?)"
_GIB = {"": 2.0**-10, "K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}


def resources(log: dict[str, Any], name: str) -> dict[str, F8]:
    """Return CPUs, nodes, GPUs and memory (GiB) of a column like ``cpu=4,mem=16G,node=1``."""
    n = len(log["JobID"])
    if name not in log:
        return dict.fromkeys(("cpu", "node", "gpu", "mem"), np.full(n, np.nan))
    matches = {
        key: pc.extract_regex(log[name], rf"(?:^|,){pattern}=(?P<number>\d{{1,9}})(?:,|$)")
        for key, pattern in (("cpu", "cpu"), ("node", "node"), ("gpu", "gres/gpu"))
    }
    counts = {key: _floats(pc.struct_field(column, "number")) for key, column in matches.items()}
    mem = pc.extract_regex(log[name], rf"(?:^|,)mem={MEMORY}(?:,|$)")
    return {**counts, "mem": _gib(mem)}


def requested_gib(log: dict[str, Any], n_cpus: F8, n_nodes: F8) -> F8:
    """Return the memory requested for the whole job: per node or CPU in logs before Slurm 21.08."""
    if "ReqMem" not in log:
        return np.full(len(n_cpus), np.nan)
    match = pc.extract_regex(log["ReqMem"], f"^{MEMORY}$")
    per = pc.struct_field(match, "per").fill_null("").to_numpy(zero_copy_only=False)
    return _gib(match) * np.where(per == "c", n_cpus, np.where(per == "n", n_nodes, 1.0))


def _gib(match: pa.Array) -> F8:
    unit = pc.struct_field(match, "unit").fill_null("").to_numpy(zero_copy_only=False)
    factors = np.array([_GIB[prefix] for prefix in unit]) if len(unit) else np.zeros(0)
    return _floats(pc.struct_field(match, "number")) * factors


def limits_s(log: dict[str, Any]) -> F8:
    """Return the time limits, s; NaN for none."""
    minutes = numbers(log, "TimelimitRaw")
    return np.where(np.isnan(minutes), spans_s(log, "Timelimit"), minutes * 60.0)


def times_s(log: dict[str, Any], name: str) -> F8:
    """Return a column of times, s since 1970 in the log's time zone; NaN if unknown."""
    if name not in log:
        return np.full(len(log["JobID"]), np.nan)
    # SLURM_TIME_FORMAT=%s prints seconds
    time = pc.strptime(log[name], format="%Y-%m-%dT%H:%M:%S", unit="s", error_is_null=True)
    seconds = time.cast(pa.int64()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(seconds), numbers(log, name), seconds)


def spans_s(log: dict[str, Any], name: str) -> F8:
    """Return a column like ``[days-]hours:minutes:seconds``, s; NaN for any other text.

    With fewer parts it is ``days-hours:minutes``, ``minutes:seconds`` or minutes.
    """
    if name not in log:
        return np.full(len(log["JobID"]), np.nan)
    match = pc.extract_regex(
        log[name], r"^(?P<d>\d+-)?(?P<a>\d+)(?P<b>:\d+)?(?P<c>:\d+(?:\.\d+)?)?$"
    )
    d, a, b, c = (
        _floats(pc.utf8_trim(pc.struct_field(match, part), "-:")) for part in ("d", "a", "b", "c")
    )
    hours_first = ~np.isnan(d) | ~np.isnan(c)
    short = a * 60.0 + np.nan_to_num(b)
    long = a * 3600.0 + np.nan_to_num(b) * 60.0 + np.nan_to_num(c)
    return np.nan_to_num(d) * 86400.0 + np.where(hours_first, long, short)


def numbers(log: dict[str, Any], name: str) -> F8:
    """Return a column of numbers; NaN if there is no number or no such column."""
    column = log.get(name)
    if column is None:
        return np.full(len(log["JobID"]), np.nan)
    if isinstance(column, np.ndarray):
        return column
    digits = pc.match_substring_regex(column, r"^\d+$")
    return _floats(pc.if_else(digits, column, pa.scalar(None, pa.string())))


def _floats(texts: pa.Array) -> F8:
    nonempty = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    numbers: F8 = nonempty.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers
