"""Amounts of work of a log's records, and the account that they open."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.losses import kind_of
from sim.base.reading import Account, BadRows
from sim.traces.sacct.clock import Times, read_times
from sim.traces.sacct.ran import NEVER_STARTED, WAITING
from sim.traces.sacct.resources import Resources, read_resources
from sim.traces.sacct.selection import Selection, any_of, is_step
from sim.traces.sacct.stages import KINDS

_WORDS = {"gpu": "GPUs are", "mem": "memory is"}


def open_account(selection: Selection, first: I8, bad: BadRows, tasks: str) -> Account:
    """Open the account of a log: its records, bad rows, and resources that no task demands.

    Parameters
    ----------
    first : (J,) int64
        First record of each job.
    tasks : {"cpus", "nodes"}
        Determines the resources that tasks demand.
    """
    amounts = _work(selection.times, selection.resources)
    no_run = any_of({rule: selection.rules[rule] for rule in (NEVER_STARTED, WAITING)})
    for column in amounts.values():
        column[no_run] = 0.0
    bad_parts = _bad_work(bad)
    kinds = KINDS[tasks]
    account = Account(
        {"jobs": selection.n_jobs(first), **{kind_of(kind): amounts[kind] for kind in kinds}}
    )
    for rule, n, part in bad_parts:
        known = {kind_of(kind): part[kind] for kind in kinds if part}
        known |= {"jobs": part["jobs"]} if part else {}
        account.add_bad(rule, known, n)
    for kind in amounts.keys() - {*kinds}:
        columns = [amounts[kind], *(part[kind] for _, _, part in bad_parts if part)]
        total = sum(float(np.nansum(column)) for column in columns)
        if total:
            rule = f"{_WORDS[kind]} not read with tasks={tasks}"
            account.add(rule, by_option=True, **{kind_of(kind): total})
    return account


def _work(times: Times, resources: Resources) -> dict[str, F8]:
    """Return the work of each record by resource, amount times run time; NaN where not known."""
    run_s = np.where(times.run_s >= 0, times.run_s, np.nan)
    columns = {"cpu": resources.cpus, "mem": resources.mem_gib, "gpu": resources.gpus}
    return {kind: column * run_s for kind, column in columns.items()}


def _bad_work(bad: BadRows) -> list[tuple[str, int, dict[str, F8]]]:
    """Return rule, number and amounts of bad rows, as far as they can be read; steps have none."""
    parts: list[tuple[str, int, dict[str, F8]]] = []
    rest = dict(bad)
    for rule, columns, n in bad.blocks():
        amounts = _work(read_times(columns), read_resources(columns)) | {"jobs": np.ones(n)}
        step = is_step(columns)
        parts.append((rule, n, {k: np.where(step, 0.0, v) for k, v in amounts.items()}))
        rest[rule] -= n
    return parts + [(rule, n, {}) for rule, n in rest.items() if n]
