"""The whole analysis: from two logs to the tables of a profile (§4)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, Mask
from sim.base.errors import InputError, unknown
from sim.lineage import advice, predict
from sim.lineage.aggregates import aggregate, bounds, convergence, count_downstream
from sim.lineage.dependencies import (
    DAY_S,
    EDGE_COLUMNS,
    OMEGA_S,
    WINDOW_S,
    Dependencies,
    Downloads,
    Graph,
    SingleHop,
    Window,
    graph,
    single_hop,
    window,
)
from sim.lineage.logs import Logs
from sim.lineage.observations import observations
from sim.lineage.store import Store
from sim.lineage.templates import (
    INPUT_MODES,
    QUANTILES,
    SIMILARITY,
    Classification,
    Templates,
    Thresholds,
    classify,
    find_templates,
    quantiles,
)

N_COSTLIEST: Final = 100
"""How many of the templates whose failure costs most are listed."""


@dataclass(frozen=True)
class Options:
    """What a profile may be told.

    Attributes
    ----------
    window_s : float
        T: how far back a write may lie, s (§4.2).
    omega_s : float
        ω: how long after a job's completion its downstream counts, s (§4.5.1). It shrinks to a
        quarter of a log that is shorter than four times as long.
    learn_s : (float, float) or None
        What recurrence is learnt from, s; None: the whole log.
    similarity : float
        Of signatures of one template.
    thresholds : Thresholds
        Of Table 1.
    exact_jobs : int
        Up to so many valid jobs values under ω are exact; beyond, they are enclosed.
    jobs_per_cut : int
        How many jobs share the cut-offs that enclose theirs.
    value : str
        What a job is worth by itself: ``downloads`` of its output, 1 each (``jobs``), its
        resource-time (``compute``), or what a column of the job log says (§4.3, §4.5.2).
    """

    window_s: float = WINDOW_S
    omega_s: float = OMEGA_S
    learn_s: tuple[float, float] | None = None
    similarity: float = SIMILARITY
    thresholds: Thresholds = field(default_factory=Thresholds)
    exact_jobs: int = 100_000
    jobs_per_cut: int = 400
    value: str = "downloads"

    def __post_init__(self) -> None:
        for name in ("window_s", "omega_s"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0 <= self.similarity <= 1:
            raise InputError(f"similarity must be between 0 and 1, not {self.similarity}")


BlockMap = Callable[[Callable[[I4], F8], Sequence[I4]], Iterable[F8]]
"""A map: calls a function with each of some blocks of jobs, perhaps elsewhere and side by side."""
BLOCK_JOBS: Final = 16_384
"""Jobs of a block."""


def profile(
    logs: Logs,
    options: Options | None = None,
    *,
    hops: SingleHop | None = None,
    block_map: BlockMap | None = None,
) -> Store:
    """Analyse two logs.

    Parameters
    ----------
    logs : Logs
        What happened.
    options : Options, optional
        Windows and thresholds.
    hops : SingleHop, optional
        The join, where it was made elsewhere; then the operations of `logs` aren't looked at.
    block_map : BlockMap, optional
        What blocks of jobs are given to, so that values are exact however many there are.

    Returns
    -------
    Store
        Tables, measures and what was odd, by rule.

    Raises
    ------
    InputError
        If there is no job.
    """
    given = Options() if options is None else options
    if not logs.n_jobs:
        raise InputError("the job log is empty: there is nothing to profile", rule="empty log")
    hops = single_hop(logs, given.window_s) if hops is None else hops
    edges, downloads = hops.dependencies, hops.downloads
    templates = find_templates(logs, similarity=given.similarity)
    character = classify(logs, templates, edges, given.thresholds, learn=given.learn_s)
    submit_s, finish_s = logs.column("submit_s"), logs.column("finish_s")
    span = float(finish_s.max() - submit_s.min())
    omega = min(given.omega_s, span / 4)
    within = window(submit_s, finish_s, omega)
    numbered = graph(edges)
    local, report = local_value(logs, downloads, given.value)
    value, value_error = _within(edges, local, within, numbered, given, block_map)
    compute, _ = _within(edges, logs.column("compute_s"), within, numbered, given, block_map)
    gap_s = advice.gap_before_use_s(logs, edges, downloads)
    component, parts = advice.components(edges)
    pairs = advice.template_dependencies(logs, templates, edges, character)
    jobs = _jobs(logs, templates, character, edges, local)
    jobs |= {
        "component": component,
        "gap_s": gap_s,
        "n_downstream": count_downstream(edges, within, numbered=numbered),
        "aggregate_value": value,
        "aggregate_value_error": value_error,
        "aggregate_compute_s": compute,
    }
    tables = {
        "jobs": pa.table(jobs),
        "dependencies": _dependencies(edges, character),
        "downloads": pa.table({"job": downloads.job, "time_s": downloads.time_s, "n": downloads.n}),
        "templates": _templates(logs, templates, character, jobs),
        "users": _users(logs, character, jobs),
        "template_dependencies": pairs,
        "inversions": advice.inversions(logs, templates, edges, character, pairs),
        "blind": advice.blind(logs, templates, character, pairs),
        "components": parts,
        "convergence": convergence(edges, local, numbered, within),
        **_predictions(logs, templates, character, edges),
    }
    tables["costliest"] = _costliest(tables["templates"])
    for name, columns in advice.NAMED.items():
        tables[name] = advice.named(tables[name], columns, tables["templates"]["template"])
    measures = observations(logs, character, hops, tables, gap_s, omega, given.value)
    return Store(tables, measures, {**logs.report, **hops.report, **report}, given.value)


VALUES: Final = ("downloads", "jobs", "compute")
"""What jobs may be valued by, beside a column of the log of jobs."""


def local_value(logs: Logs, downloads: Downloads, value: str) -> tuple[F8, dict[str, int]]:
    """Return what each job is worth by itself (§4.3), and what was odd, by rule."""
    if value == "downloads":
        return downloads.per_job(logs.n_jobs), {}
    if value == "jobs":
        return np.ones(logs.n_jobs), {}
    columns = [n for n in logs.jobs.column_names if pa.types.is_floating(logs.jobs[n].type)]
    name = "compute_s" if value == "compute" else value
    if name not in columns:
        raise InputError(unknown("value", value, [*VALUES, *columns]), rule="wrong option")
    of = logs.column(name).astype(np.float64)
    bad = np.flatnonzero((of < 0) | np.isinf(of))
    if len(bad):
        raise InputError(
            f"a value must be finite and 0 or more, not {of[bad[0]]:g} ({name} of job "
            f"{logs.jobs['job_id'][int(bad[0])].as_py()!r})",
            rule="number out of range",
        )
    n_unknown = int(np.isnan(of).sum())
    return np.nan_to_num(of), {f"jobs: without {name}, worth 0": n_unknown} if n_unknown else {}


def _within(
    edges: Dependencies,
    value: F8,
    within: Window,
    numbered: Graph,
    options: Options,
    block_map: BlockMap | None,
) -> tuple[F8, F8]:
    """Return aggregates under ω, and how far each may be off; NaN for jobs that are not valid."""
    if block_map is not None:
        valid = np.flatnonzero(within.valid).astype(np.int32)
        blocks = [valid[at : at + BLOCK_JOBS] for at in range(0, len(valid), BLOCK_JOBS)]
        exact = np.full(len(value), np.nan)
        of = functools.partial(_aggregate_of, edges, value, within, numbered)
        for block, values in zip(blocks, block_map(of, blocks), strict=True):
            exact[block] = values
        return exact, exact * 0.0
    if int(within.valid.sum()) <= options.exact_jobs:
        exact = aggregate(edges, value, within=within, numbered=numbered)
        return exact, exact * 0.0
    enclosed = bounds(edges, value, within, numbered=numbered, jobs_per_cut=options.jobs_per_cut)
    return (enclosed.low + enclosed.high) / 2, (enclosed.high - enclosed.low) / 2


def _aggregate_of(edges: Dependencies, value: F8, within: Window, numbered: Graph, jobs: I4) -> F8:
    """Return the aggregates of some valid jobs."""
    these = np.zeros(len(value), bool)
    these[jobs] = True
    own = Window(within.submit_s, within.cut_s, these)
    return aggregate(edges, value, within=own, numbered=numbered)[jobs]


def _jobs(
    logs: Logs, templates: Templates, character: Classification, edges: Dependencies, local: F8
) -> dict[str, object]:
    plain = ("job_id", "user", "queue", "organisation", "priority", "submit_s", "start_s")
    more = ("finish_s", "requested", "compute_s", "outcome")
    modes = pa.DictionaryArray.from_arrays(
        pa.array(character.input_mode.astype(np.int32)), pa.array(INPUT_MODES)
    )
    return {
        **{name: logs.jobs[name] for name in plain + more},
        "template": templates.job_template,
        "recurring": character.job_recurring,
        "polls": character.job_polls,
        "input_mode": modes,
        "fan_in": edges.n_upstream().astype(np.int32),
        "fan_out": edges.n_downstream().astype(np.int32),
        "local_value": local,
    }


def _dependencies(edges: Dependencies, character: Classification) -> pa.Table:
    return pa.table(
        {
            **{name: getattr(edges, name) for name in EDGE_COLUMNS},
            "recurring": character.edge_recurring,
            "hard": character.edge_hard,
            "polls": character.edge_polls,
        }
    )


_DISTRIBUTIONS = (
    "runtime_s", "compute_s", "fan_in", "fan_out", "n_downstream", "local_value", "aggregate_value",
    "aggregate_compute_s", "value_efficiency",
)  # fmt: skip
"""What templates and users have a distribution of; columns ``<name>_p10`` to ``<name>_p90``."""


def _distributions(
    logs: Logs, jobs: dict[str, object], group: I4, n: int, counted: Mask
) -> dict[str, F8]:
    value = np.asarray(jobs["aggregate_value"])
    compute = np.asarray(jobs["aggregate_compute_s"])
    with np.errstate(invalid="ignore", divide="ignore"):
        efficiency = np.where(compute > 0, value / compute, np.nan)
    known = {
        "runtime_s": logs.column("finish_s") - logs.column("start_s"),
        "compute_s": logs.column("compute_s"),
        "value_efficiency": efficiency,
    }
    out = {}
    for name in _DISTRIBUTIONS:
        column = known[name] if name in known else np.asarray(jobs[name], np.float64)
        shares = quantiles(np.where(counted, column, np.nan), group, n)
        for k, q in enumerate(QUANTILES):
            out[f"{name}_p{round(100 * q)}"] = shares[:, k]
    return out


def _templates(
    logs: Logs, templates: Templates, character: Classification, jobs: dict[str, object]
) -> pa.Table:
    n, of = len(templates), templates.job_template
    first = np.full(n, logs.n_jobs, np.int64)
    np.minimum.at(first, of, np.arange(logs.n_jobs))
    everything = np.ones(logs.n_jobs, bool)
    rows = pa.array(first)
    return pa.table(
        {
            "template": pa.array(templates.name, pa.string()),
            "n_jobs": np.bincount(of, minlength=n).astype(np.int32),
            "recurring": character.recurring,
            "periodic": character.periodic,
            "polls": character.template_polls,
            "never_missed": character.never_missed,
            "interarrival_s": character.interarrival_s,
            "interarrival_cv": character.interarrival_cv,
            **{c: logs.jobs[c].take(rows) for c in ("user", "queue", "organisation")},
            "priority_p50": quantiles(logs.column("priority"), of, n, (0.5,))[:, 0],
            **_distributions(logs, jobs, of, n, everything),
        }
    )


def _users(logs: Logs, character: Classification, jobs: dict[str, object]) -> pa.Table:
    """Return what is known of each user's ad hoc jobs."""
    names, of = logs.names("user"), logs.column("user")
    adhoc = ~character.job_recurring
    return pa.table(
        {
            "user": pa.array(names, pa.string()),
            "n_jobs": np.bincount(of, adhoc, len(names)).astype(np.int32),
            **_distributions(logs, jobs, of, len(names), adhoc),
        }
    )


def _costliest(templates: pa.Table) -> pa.Table:
    """Return the templates a run of which is worth most to what is downstream."""
    value = templates["aggregate_value_p50"].to_numpy()
    worth = value - templates["local_value_p50"].to_numpy()
    order = np.argsort(-np.where(np.isnan(value), -np.inf, value), kind="stable")[:N_COSTLIEST]
    order = order[~np.isnan(value[order]) & (value[order] > 0)]
    return pa.table(
        {
            "template": order.astype(np.int32),
            "aggregate_value": value[order],
            "of_others": worth[order],
            "n_downstream": templates["n_downstream_p50"].to_numpy()[order],
        }
    )


def _predictions(
    logs: Logs, templates: Templates, character: Classification, edges: Dependencies
) -> dict[str, pa.Table]:
    """Train on the week before the last that can be tested, test on it; halves of a short log."""
    submit_s = logs.column("submit_s")
    begin, end = float(submit_s[0]), float(submit_s[-1])
    week = min(7 * DAY_S, (end - begin) / 3)
    middle = end - 2 * week  # what the test week's jobs lead to may take a week more
    of, recurring = templates.job_template, character.recurring
    uses = predict.first_uses(edges, of, submit_s, recurring)
    model = predict.learn(uses, of, submit_s, (middle - week, middle), len(recurring))
    then = (submit_s >= middle) & (submit_s < middle + week) & recurring[of]
    tested = predict.forecast(model, uses, of, np.flatnonzero(then), len(recurring))
    table = predict.threshold_table(tested)
    errors = np.empty(0)
    if not np.isnan(table["precision"].to_numpy() * table["recall"].to_numpy()).all():
        best = predict.best_threshold(table)
        errors = np.sort(predict.percentage_errors(*tested.errors_s(best)))
    q = np.linspace(0, 1, 201)
    return {
        "predictability": table,
        "forecast_errors": pa.table(
            {"q": q, "percentage_error": np.quantile(errors, q) if len(errors) else q * np.nan}
        ),
        "predictions": pa.table(
            {name: getattr(model, name) for name in ("upstream", "downstream", "share", "time_s")}
        ),
    }
