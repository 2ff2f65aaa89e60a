"""A provenance log of the size that Wing's experiments use: plain, seeded, in columns.

It has the shape that matters to speed and no more: templates that recur every hour to every week,
layered so that each reads the latest output of a few others (some of them their own last output),
ad hoc jobs that read what is fresh, files that several readers share, Zipf downloads.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from policies.wing.lineage.files import OPERATION_NAMES
from policies.wing.lineage.logs import Logs, make_logs

DAY_S = 86_400.0
PERIODS_S = np.array([3600.0, 6 * 3600.0, DAY_S, 7 * DAY_S])
SHARES = np.array([0.008, 0.05, 0.84, 0.102])  # of templates; most submit daily
READS_PER_EDGE = 5
RECURRING = 0.68


def make_log(n_jobs: int = 1_100_000, days: float = 28.0, seed: int = 0) -> Logs:
    """Make a log of about so many jobs, four dependencies and 27 operations each."""
    rng = np.random.default_rng(seed)
    end = days * DAY_S
    runs = SHARES @ (end / PERIODS_S)
    n_templates = max(4, int(RECURRING * n_jobs / runs))
    period = rng.choice(PERIODS_S, n_templates, p=SHARES)
    phase = rng.random(n_templates) * period
    n_runs = np.maximum(1, ((end - phase) // period).astype(np.int64))
    template = np.repeat(np.arange(n_templates), n_runs)
    run = np.arange(len(template)) - np.repeat(np.cumsum(n_runs) - n_runs, n_runs)
    submit = phase[template] + run * period[template] + rng.random(len(template)) * 300
    n_adhoc = n_jobs - len(template)
    submit = np.concatenate([submit, rng.random(n_adhoc) * end])
    template = np.concatenate([template, n_templates + np.arange(n_adhoc) % 2000])
    order = np.argsort(submit)
    submit, template = submit[order], template[order]
    n = len(submit)
    run_s = np.minimum(rng.lognormal(6.0, 1.2, n), 0.5 * DAY_S)
    up, down = _edges(rng, submit, submit + run_s, template, n_templates)
    return _log(rng, submit, run_s, template, up, down)


def _edges(rng, submit, finish, template, n_templates):  # type: ignore[no-untyped-def]
    """Give each recurring job the latest runs of its template's inputs, each ad hoc job any."""
    n = len(submit)
    recurring = np.flatnonzero(template < n_templates)
    fan_in = np.minimum(rng.geometric(0.24, n_templates), 12)
    reader = np.repeat(np.arange(n_templates), fan_in)
    # inputs come from earlier templates of the same team, seldom from another, 2 % from itself
    team = 200
    base = reader - reader % team
    source = base + (rng.random(len(reader)) * np.maximum(reader - base, 1)).astype(np.int64)
    far = rng.random(len(reader)) < 0.1
    source[far] = (rng.random(far.sum()) * reader[far]).astype(np.int64)
    own = rng.random(len(reader)) < 0.02
    source[own] = reader[own]
    order = np.lexsort([finish[recurring], template[recurring]])
    key_t, key_s = template[recurring][order], finish[recurring][order]
    span = finish.max() + 1
    key = key_t * span + key_s
    start = np.searchsorted(reader, template[recurring])
    count = fan_in[template[recurring]]
    down = np.repeat(recurring, count)
    offset = np.arange(len(down)) - np.repeat(np.cumsum(count) - count, count)
    source_template = source[np.repeat(start, count) + offset]
    latest = np.searchsorted(key, source_template * span + submit[down]) - 1
    ok = (latest >= 0) & (key_t[np.maximum(latest, 0)] == source_template)
    up = recurring[order[latest[ok]]]
    down = down[ok]
    adhoc = np.repeat(np.flatnonzero(template >= n_templates), 3)
    by_finish = np.argsort(finish)
    known = np.searchsorted(finish[by_finish], submit[adhoc])
    pick = known - 1 - (rng.random(len(adhoc)) ** 2 * np.minimum(known, 80_000)).astype(np.int64)
    ok = pick >= 0
    up, down = np.append(up, by_finish[pick[ok]]), np.append(down, adhoc[ok])
    pairs = np.unique(up.astype(np.int64) * n + down)
    return pairs // n, pairs % n


def _log(rng, submit, run_s, template, up, down) -> Logs:  # type: ignore[no-untyped-def]
    n, n_files = len(submit), 3
    finish = submit + run_s
    writes = np.repeat(np.arange(n), n_files)
    write_file = writes * n_files + np.tile(np.arange(n_files), n)
    reads = np.repeat(down, READS_PER_EDGE)
    read_file = np.repeat(up, READS_PER_EDGE) * n_files + rng.integers(0, n_files, len(reads))
    n_down = rng.permutation(np.minimum((n / 3) / np.arange(1, n + 1), 20_000)).astype(np.int64)
    taken = np.repeat(np.arange(n), n_down)
    parts: list[tuple[NDArray, ...]] = [
        (finish[writes], writes, np.full(len(writes), 1), write_file),
        (
            submit[reads] + run_s[reads] * rng.random(len(reads)),
            reads,
            np.zeros(len(reads)),
            read_file,
        ),
        (
            finish[taken] + rng.exponential(DAY_S, len(taken)) + 1,
            np.full(len(taken), -1),
            np.full(len(taken), 2),
            taken * n_files,
        ),
    ]
    time_s, job, operation, file = (np.concatenate(c) for c in zip(*parts, strict=True))
    order = np.argsort(time_s)
    jobs = {
        "job_id": pa.array(np.arange(n)).cast(pa.string()),
        "template_name": pa.array(template).cast(pa.string()),
        "user": pa.array(template % 1300).cast(pa.string()),
        "queue": pa.array(template % 150).cast(pa.string()),
        "priority": (template * 7919 % 100).astype(float),
        "submit_s": submit,
        "finish_s": finish,
        "requested": np.ceil(rng.lognormal(2, 1, n)),
    }
    known = make_logs({"time_s": [0.0], "operation": ["write"], "file": ["x"], "job": ["0"]}, jobs)
    assert OPERATION_NAMES[:3] == ("read", "write", "download")
    return Logs(
        known.jobs,
        time_s[order],
        job[order].astype(np.int32),
        operation[order].astype(np.int8),
        file[order].astype(np.int32),
        np.ones(len(order), np.int32),
        pa.array(np.arange(n * n_files)).cast(pa.string()),
        {},
    )
