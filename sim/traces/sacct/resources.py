"""Resources that records had: CPUs, nodes, GPUs and memory, from counts and texts of resources.

Trackable resources (TRES) are a text such as ``billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,mem=64G,
node=1,license/matlab=2``. A job's GPUs may be given in all, by model, or both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.traces.sacct.columns import (
    Log,
    are_all,
    by_value,
    first_known,
    floats,
    has_text,
    n_records,
    numbers,
)

MEMORY = r"(?P<number>\d{1,15}(?:\.\d+)?)(?P<unit>[KMGTP]?)(?P<per>[nc]?)"
_GIB = {"": 2.0**-10, "K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}
_GPU_MODEL = re.compile(r"(?:^|,)gres/gpu:([^=,]+)=(\d{1,9})(?=,|$)")
_LICENCE = re.compile(r"(?:^|,)license/([^=,]+)=(\d{1,9})(?=,|$)")
_REQUESTED_LICENCE = re.compile(r"(?:^|[,;])([^:=,;|]+)(?:[:=](\d{1,9}))?(?=[,;]|$)")
ALLOCATED = ("AllocCPUS", "NCPUS", "AllocTRES")
"""Columns of what a job really had."""
_NO_NODES = r"^(?i:\(null\)|none|none assigned)?$"


@dataclass(frozen=True, eq=False)
class Resources:
    """Resources of N records; NaN where the log does not tell.

    Attributes
    ----------
    cpus, nodes, gpus, mem_gib : (N,) float64
        Of the whole allocation.
    is_empty : (N,) bool
        The log shows an allocation of nothing: no CPU, or no node.
    """

    cpus: F8
    nodes: F8
    gpus: F8
    mem_gib: F8
    is_empty: Mask

    def take(self, rows: I8) -> Resources:
        """Return those of some records."""
        if are_all(rows, len(self.cpus)):
            return self
        return Resources(*(getattr(self, field.name)[rows] for field in fields(self)))


def read_resources(log: Log) -> Resources:
    """Read the resources of each record."""
    alloc, requested = (_Tres(log, name) for name in ("AllocTRES", "ReqTRES"))
    n_cpus = [numbers(log, name) for name in ("AllocCPUS", "NCPUS")]
    allocated = first_known(*n_cpus, alloc.cpus)
    cpus = first_known(allocated, requested.cpus, numbers(log, "ReqCPUS"))
    n_nodes = [numbers(log, name) for name in ("NNodes", "AllocNodes")]
    nodes = first_known(*n_nodes, alloc.nodes, requested.nodes)
    mem_gib = first_known(alloc.mem_gib, requested.mem_gib, _requested_gib(log, cpus, nodes))
    gpus = first_known(alloc.gpus, requested.gpus)
    if alloc.is_present or requested.is_present:
        gpus = np.nan_to_num(gpus)
    has_some = ~np.isnan(first_known(allocated, alloc.nodes, alloc.gpus, alloc.mem_gib))
    is_empty = _shows_nothing(log, [*n_cpus, *n_nodes]) & ~has_some
    return Resources(cpus, nodes, gpus, mem_gib, is_empty)


def _shows_nothing(log: Log, counts: list[F8]) -> Mask:
    """Mark the records of which the log tells that they had nothing, unless it tells more."""
    empty = np.zeros(n_records(log), dtype=bool)
    for column in counts:
        empty |= column == 0
    if "AllocTRES" in log:
        empty |= ~has_text(log, "AllocTRES")
    if "NodeList" in log:
        no_node = pc.match_substring_regex(log["NodeList"], _NO_NODES).fill_null(True)
        empty |= no_node.to_numpy(zero_copy_only=False).astype(bool)
    return empty


class _Tres:
    """Amounts in a column of trackable resources."""

    def __init__(self, log: Log, name: str) -> None:
        self.is_present = name in log
        if not self.is_present:
            unknown = np.full(n_records(log), np.nan)
            self.cpus = self.nodes = self.gpus = self.mem_gib = unknown
            return
        coded = log[name].dictionary_encode()
        texts = coded.dictionary
        code = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        self.cpus, self.nodes, gpus = (
            np.append(_counts(texts, kind), np.nan)[code] for kind in ("cpu", "node", "gres/gpu")
        )
        mem = pc.extract_regex(texts, rf"(?:^|,)mem={MEMORY}(?:,|$)")
        self.mem_gib = np.append(_gib(mem), np.nan)[code]
        by_model = np.append(_gpus_by_model(texts), np.nan)[code]
        self.gpus = np.fmax(gpus, by_model)


def _counts(texts: pa.Array, kind: str) -> F8:
    match = pc.extract_regex(texts, rf"(?:^|,){kind}=(?P<number>\d{{1,9}})(?:,|$)")
    return floats(pc.struct_field(match, "number"))


def _gpus_by_model(texts: pa.Array) -> F8:
    """Return the sum of a text's GPUs of all models; NaN if it names no model."""
    gpus = np.full(len(texts), np.nan)
    for row in np.flatnonzero(_has(texts, "gres/gpu:")):
        gpus[row] = sum(int(n) for _, n in _GPU_MODEL.findall(texts[int(row)].as_py()))
    return gpus


def _has(texts: pa.Array, part: str) -> Mask:
    has: Mask = pc.match_substring(texts, part).to_numpy(zero_copy_only=False).astype(bool)
    return has


def gpu_models(log: Log) -> tuple[I8, list[str]] | None:
    """Return the code of the GPU models of each record, and the models: ``a100|v100``.

    None if the log names none.
    """
    name = "AllocTRES" if "AllocTRES" in log else "ReqTRES"
    if name not in log:
        return None
    coded = log[name].fill_null("").dictionary_encode()
    texts = coded.dictionary
    models = [""] * len(texts)
    for row in np.flatnonzero(_has(texts, "gres/gpu:")):
        found_models = _GPU_MODEL.findall(texts[int(row)].as_py())
        models[int(row)] = "|".join(sorted({model for model, n in found_models if int(n)}))
    if not any(models):
        return None
    index = {model: i for i, model in enumerate(sorted({"", *models}))}
    code_of_text = np.array([index[model] for model in models])
    return code_of_text[coded.indices.to_numpy(zero_copy_only=False)], list(index)


def licence_counts(log: Log) -> dict[str, I8]:
    """Return the number of each licence that the records held: license -> (N,).

    The largest of what the trackable resources tell, which a site may not keep, and what the job
    asked for; of alternatives (``a:1|b:1``) the first.
    """
    counts: dict[str, I8] = {}
    tres = "AllocTRES" if "AllocTRES" in log else "ReqTRES"
    for column, pattern in ((tres, _LICENCE), ("Licenses", _REQUESTED_LICENCE)):
        if not has_text(log, column).any():
            continue
        coded = log[column].fill_null("").dictionary_encode()
        code = coded.indices.to_numpy(zero_copy_only=False)
        n_texts = len(coded.dictionary)
        by_text: dict[str, I8] = {}
        for row, text in enumerate(coded.dictionary.to_pylist()):
            for licence, n in pattern.findall(text.partition("|")[0].strip("\"'")):
                by_text.setdefault(licence, np.zeros(n_texts, np.int64))[row] += int(n or 1)
        for licence, n_of_text in by_text.items():
            number = n_of_text[code]
            counts[licence] = np.maximum(counts.get(licence, number), number)
    return {licence: n for licence, n in sorted(counts.items()) if n.any()}


def _requested_gib(log: Log, n_cpus: F8, n_nodes: F8) -> F8:
    """Return the memory requested for the whole job: per node or CPU in logs before Slurm 21.08."""
    if "ReqMem" not in log:
        return np.full(len(n_cpus), np.nan)
    column = log["ReqMem"]
    amount = by_value(column, lambda texts: _gib(pc.extract_regex(texts, f"^{MEMORY}$")))
    per_cpu, per_node = (
        pc.ends_with(column, sign).fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
        for sign in "cn"
    )
    times = np.where(per_cpu, n_cpus, np.where(per_node, n_nodes, 1.0))
    return amount * np.fmax(times, 1.0)


def _gib(match: pa.Array) -> F8:
    unit = pc.struct_field(match, "unit").fill_null("").to_numpy(zero_copy_only=False)
    factors = np.array([_GIB[prefix] for prefix in unit]) if len(unit) else np.zeros(0)
    return floats(pc.struct_field(match, "number")) * factors
