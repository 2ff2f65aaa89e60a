"""Groups of jobs that share a counter, for the caps of a cluster and the throttles of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8, Mask, offsets
from sim.base.errors import InputError, unknown
from sim.cluster.allowed import job_nodes, unadmitted_jobs
from sim.cluster.caps import (
    JOBS,
    MINUTES,
    NODES,
    RUNNING,
    SUBMITTED,
    Cap,
    accounts_above,
    is_licence,
)
from sim.workload.schema import ARRAY, PARTITION
from sim.workload.tables import names, values

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns

MAX_CAP = 2.0**61
"""Largest cap in quanta, or quanta × s: more than any sum that is counted."""
_ARRAY, _THROTTLE = (column.name for column in ARRAY)


@dataclass(frozen=True, eq=False)
class Groups:
    """N groups of J jobs.

    Attributes
    ----------
    caps : tuple of Cap
        The rows.
    cap : (N,) int32
        Row of each group.
    number : (N,) float64
        Its cap, in the row's unit.
    key : tuple of tuples of str
        Its values of the row's keys.
    job_group0 : (J+1,) int64
        Groups of job j are ``group[job_group0[j]:job_group0[j+1]]``.
    group : (*,) int32
    is_spared : (*,) bool
        Of each entry of `group`: the job counts, and may exceed the cap.
    signature : (J,) int64
        Equal for jobs in the same groups.
    change_s : (K,) float64
        Times at which caps of groups change, ascending, s.
    change_group : (K,) int32
    change_number : (K,) float64
        What the cap is from then on; inf for none.
    """

    caps: tuple[Cap, ...]
    cap: I4
    number: F8
    key: tuple[tuple[str, ...], ...]
    job_group0: I8
    group: I4
    is_spared: Mask
    signature: I8
    change_s: F8
    change_group: I4
    change_number: F8

    def __bool__(self) -> bool:
        """Tell whether any job has a cap."""
        return len(self.group) > 0

    def jobs(self) -> I8:
        """Return the job of each entry of `group`."""
        return np.repeat(np.arange(len(self.job_group0) - 1), np.diff(self.job_group0))

    def counts(self, counted: str) -> Mask:
        """Tell which groups count jobs of that kind, or (`MINUTES`) minutes of a resource."""
        return np.array(
            [
                row.counted == counted or (counted == MINUTES and row.counted.endswith(MINUTES))
                for row in self.caps
            ],
            dtype=bool,
        )[self.cap]

    @property
    def lasting(self) -> F8:
        """The cap of each group after its last change, (N,)."""
        last = self.number.copy()
        last[self.change_group] = self.change_number  # the last of a group is written last
        return last

    def number_at(self, group: int, times: F8) -> F8:
        """Return the cap of a group at each time, of the same shape."""
        rows = self.change_group == group
        steps = np.append(self.number[group], self.change_number[rows])
        number: F8 = steps[np.searchsorted(self.change_s[rows], times, side="right")]
        return number

    def quanta(self, resources: Sequence[str], quantum: F8, number: F8, group: I4) -> I8:
        """Return caps of groups: jobs, nodes, quanta of a resource, quanta × s; as `number`."""
        units = np.ones(len(self.caps))
        for i, row in enumerate(self.caps):
            if row.resource is not None:
                units[i] = quantum[list(resources).index(row.resource)]
                units[i] /= 60.0 if row.counted.endswith(MINUTES) else 1.0
        whole = np.floor(number / units[self.cap[group]] * (1 + 1e-12) + 1e-9)
        return np.minimum(whole, MAX_CAP).astype(np.int64)


def cap_groups(columns: Columns, cluster: Cluster) -> Groups:
    """Return the groups of the workload's jobs; of the cluster's rows, and of throttled arrays.

    Jobs that no partition admits have a cap of 0 submitted jobs.

    Raises
    ------
    InputError
        If a cap counts by a column that the jobs lack, or of an unknown resource.
    """
    n_jobs = len(columns.job_submit)
    caps = list(cluster.limits)
    for row in caps:
        _check_row(row, columns, cluster)
    members = [_members(row, columns, cluster) for row in caps]
    throttles = throttles_of_arrays(columns)
    if throttles:
        caps.append(Cap(RUNNING, throttles, (_ARRAY,), name="the throttle of an array"))
        members.append(_members(caps[-1], columns, cluster))
    rejected = unadmitted_jobs(columns, cluster)
    if rejected.any():
        caps.append(Cap(SUBMITTED, 0.0, name="partitions that admit the job"))
        members.append((rejected.astype(np.int64), [[], [()]], [False, False]))
    cap: list[int] = []
    number: list[float] = []
    key: list[tuple[str, ...]] = []
    jobs, groups = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    spared = [np.zeros(0, bool)]
    signature = np.zeros(n_jobs, np.int64)
    for i, (combination, entries, are_spared) in enumerate(members):
        index: dict[tuple[str, ...], int] = {}
        own = [[index.setdefault(e, len(key) + len(index)) for e in entry] for entry in entries]
        first_caps = (caps[i].number_of(combined) for combined in index)
        number += [np.inf if at_most is None else at_most for at_most in first_caps]
        cap += [i] * len(index)
        key += list(index)
        counts = np.array([len(e) for e in own], np.int64)[combination]
        jobs.append(np.repeat(np.arange(n_jobs), counts))
        spared.append(np.repeat(np.array(are_spared, bool)[combination], counts))
        flat = np.array([g for e in own for g in e], np.int64)
        first = offsets(np.array([len(e) for e in own], np.int64))[combination]
        within = np.arange(counts.sum()) - np.repeat(offsets(counts)[:-1], counts)
        groups.append(flat[np.repeat(first, counts) + within])
        signature = np.unique(signature * (len(entries) + 1) + combination, return_inverse=True)[1]
    job, group = np.concatenate(jobs), np.concatenate(groups)
    order = np.lexsort((group, job))
    changes = sorted(
        (at_s, g, caps[cap[g]].number_of(key[g], at_most))
        for g in range(len(key))
        for at_s, at_most in caps[cap[g]].changes
    )
    return Groups(
        tuple(caps),
        np.array(cap, np.int32),
        np.array(number, np.float64),
        tuple(key),
        offsets(np.bincount(job, minlength=n_jobs)),
        group[order].astype(np.int32),
        np.concatenate(spared)[order],
        signature,
        np.array([at_s for at_s, _, _ in changes], np.float64),
        np.array([g for _, g, _ in changes], np.int32),
        np.array([np.inf if n is None else n for _, _, n in changes], np.float64),
    )


def amounts(columns: Columns, row: Cap) -> I8:
    """Return how much each job takes of a counter that is of no resource, while it counts, (J,)."""
    if row.counted == NODES:
        return job_nodes(columns).astype(np.int64)
    if not is_licence(row.counted):
        return np.ones(len(columns.job_submit), np.int64)
    return values(columns.features.jobs, row.counted).astype(np.int64)


def _members(
    row: Cap, columns: Columns, cluster: Cluster
) -> tuple[I8, list[list[tuple[str, ...]]], list[bool]]:
    """Return the combination of values of each job, (J,), the groups of each, as keys, and spares.

    The last tells of each combination whether it is spared.
    """
    code = np.zeros(len(columns.job_submit), np.int64)
    if is_licence(row.counted):
        code[:] = amounts(columns, row) > 0
    holds = code > 0
    read = (*row.by, *(row.where or {}), *(row.spares or {}))
    categories = {name: _category(columns, cluster, name) for name in read}
    for column, _ in categories.values():
        code = np.unique(code * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    n = int(code.max(initial=-1)) + 1
    example = np.zeros(n, np.int64)
    example[code] = np.arange(len(code))
    entries: list[list[tuple[str, ...]]] = []
    spared: list[bool] = []
    for j in example.tolist():
        own = {name: texts[int(column[j])] for name, (column, texts) in categories.items()}
        counts = holds[j] or not is_licence(row.counted)
        entries.append(_keys_of(row, own, cluster.accounts) if counts else [])
        spared.append(any(own[name] in values for name, values in (row.spares or {}).items()))
    return code, entries, spared


def _category(columns: Columns, cluster: Cluster, name: str) -> tuple[I4, tuple[str, ...]]:
    """Return the codes of a column of strings, (J,), and their texts.

    A job that names no partition is in the cluster's default one.
    """
    if name == PARTITION.name:
        texts = (text or cluster.default_partition for text in columns.partitions)
        return columns.job_partition, tuple(texts)
    jobs = columns.features.jobs
    column = jobs[name].chunk(0)
    if pa.types.is_dictionary(column.type):
        return values(jobs, name), names(jobs, name)
    encoded = column.cast(pa.string()).dictionary_encode()
    return encoded.indices.to_numpy(), tuple(encoded.dictionary.to_pylist())


def _keys_of(row: Cap, own: Mapping[str, str], above: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the keys of the groups of a job with these values that have a cap."""
    if any(own[name] != value for name, value in (row.where or {}).items()):
        return []
    if not all(own[name] for name in row.by):
        return []
    options = [
        accounts_above(own[name], above) if name == "account" else [own[name]] for name in row.by
    ]
    numbers = (row.at_most, *(at_most for _, at_most in row.changes))
    return [
        key
        for key in product(*options)
        if any(row.number_of(key, at_most) is not None for at_most in numbers)
    ]


def _check_row(row: Cap, columns: Columns, cluster: Cluster) -> None:
    """Refuse a row that counts what the jobs or the cluster do not have."""
    jobs = columns.features.jobs
    for name in (*row.by, *(row.where or {}), *(row.spares or {})):
        is_default = name == PARTITION.name and cluster.default_partition
        if name not in jobs.column_names and not is_default:
            raise InputError(
                f"{row.name} counts by {name!r}, and the workload's jobs have no such column; "
                f"give them one, or count by another key",
                rule="limits",
            )
    if is_licence(row.counted):
        if row.counted not in jobs.column_names:
            raise InputError(
                f"{row.name} counts {row.counted}, and the workload's jobs have no such column; "
                "give them one with the licences that each holds",
                rule="limits",
            )
        return
    if row.resource is not None and row.resource not in cluster.resources:
        choices = (*JOBS, *cluster.resources, *(name + MINUTES for name in cluster.resources))
        raise InputError(f"{row.name}: {unknown('counter', row.counted, choices)}", rule="limits")


def throttles_of_arrays(columns: Columns) -> dict[str, float]:
    """Return the throttle of each array that has one: the least of its jobs' above 0."""
    jobs = columns.features.jobs
    if not {_ARRAY, _THROTTLE} <= set(jobs.column_names):
        return {}
    array, throttle = values(jobs, _ARRAY), values(jobs, _THROTTLE)
    texts = names(jobs, _ARRAY)
    smallest = np.full(len(texts), np.inf)
    np.minimum.at(smallest, array[throttle > 0], throttle[throttle > 0])
    return {
        name: number
        for name, number in zip(texts, smallest.tolist(), strict=True)
        if name and number < np.inf
    }
