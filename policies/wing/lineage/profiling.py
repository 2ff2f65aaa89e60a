"""The profiler: from two logs to the tables of a profile (§4)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage import advice, predict
from policies.wing.lineage.aggregates import (
    aggregate,
    aggregate_bounds,
    convergence,
    count_downstream,
)
from policies.wing.lineage.dependencies import (
    DAY_S,
    EDGE_COLUMNS,
    Dependencies,
    Graph,
    SingleHop,
    Window,
    drop_cycles,
    graph,
    window,
)
from policies.wing.lineage.families import families
from policies.wing.lineage.local_value import local_value
from policies.wing.lineage.logs import Logs
from policies.wing.lineage.observations import observations
from policies.wing.lineage.options import Options, empty_log, first_notes
from policies.wing.lineage.store import Store
from policies.wing.lineage.templates import (
    INPUT_MODES,
    QUANTILES,
    Classification,
    Templates,
    classify,
    quantiles,
)
from sim.base.arrays import F8, I4, Mask

N_COSTLIEST: Final = 100
"""Maximum length of the list of templates whose failure costs most."""


BlockMap = Callable[[Callable[[I4], F8], Sequence[I4]], Iterable[F8]]
"""Parallel map: calls a function on each block of jobs, perhaps in other processes."""
BLOCK_JOBS: Final = 16_384
"""Number of jobs in a block."""


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
        Jobs and operations.
    options : Options, optional
        Windows and thresholds.
    hops : SingleHop, optional
        A join made beforehand; then the operations of `logs` are ignored.
    block_map : BlockMap, optional
        Parallel map over blocks of jobs; with it, values are exact for any number of jobs.

    Returns
    -------
    Store
        Tables, measures and counts of anomalies, by rule.

    Raises
    ------
    InputError
        If there are no jobs.
    """
    settings = Options() if options is None else options
    if not logs.n_jobs:
        raise empty_log(logs)
    hops = drop_cycles(settings.join(logs)) if hops is None else hops
    edges, downloads = hops.dependencies, hops.downloads
    templates = settings.templates(logs)
    classes = classify(logs, templates, edges, settings.thresholds, learn=settings.learn_s)
    submit_s, finish_s = logs.column("submit_s"), logs.column("finish_s")
    span = float(finish_s.max() - submit_s.min())
    omega = min(settings.omega_s, span / 4)
    within = window(submit_s, finish_s, omega)
    dag = graph(edges)
    local, report = local_value(logs, downloads, settings.value)
    value, value_error = _windowed_aggregates(edges, local, within, dag, settings, block_map)
    compute, _ = _windowed_aggregates(
        edges, logs.column("compute_s"), within, dag, settings, block_map
    )
    gap_s = advice.gap_before_use_s(logs, edges, downloads)
    component, parts = advice.components(edges)
    pairs = advice.template_dependencies(logs, templates, edges, classes)
    jobs = _jobs(logs, templates, classes, edges, local)
    jobs |= {
        "component": component,
        "gap_s": gap_s,
        "n_downstream": count_downstream(edges, within, dag=dag),
        "aggregate_value": value,
        "aggregate_value_error": value_error,
        "aggregate_compute_s": compute,
    }
    tables = {
        "jobs": pa.table(jobs),
        "dependencies": _dependencies(edges, classes),
        "downloads": pa.table({"job": downloads.job, "time_s": downloads.time_s, "n": downloads.n}),
        "templates": _templates(logs, templates, classes, jobs),
        "users": _users(logs, classes, jobs),
        "template_dependencies": pairs,
        "inversions": advice.priority_inversions(logs, templates, edges, classes, pairs),
        "blind": advice.blind_templates(logs, templates, classes, pairs),
        "components": parts,
        "convergence": convergence(edges, local, dag, within),
        **_predictions(logs, templates, classes, edges),
    }
    tables["costliest"] = _costliest(tables["templates"])
    for name, columns in advice.TEMPLATE_COLUMNS.items():
        tables[name] = advice.add_template_names(
            tables[name], columns, tables["templates"]["template"]
        )
    measures = observations(logs, classes, hops, tables, gap_s, omega, settings.value)
    report = {**logs.report, **hops.report, **families(templates), **report}
    return Store(tables, measures, report, settings.value, first_notes(logs, hops))


def _windowed_aggregates(
    edges: Dependencies,
    value: F8,
    within: Window,
    dag: Graph,
    options: Options,
    block_map: BlockMap | None,
) -> tuple[F8, F8]:
    """Compute aggregates under ω and their maximum errors; NaN for jobs that are not valid."""
    if block_map is not None:
        valid = np.flatnonzero(within.valid).astype(np.int32)
        blocks = [valid[i : i + BLOCK_JOBS] for i in range(0, len(valid), BLOCK_JOBS)]
        exact = np.full(len(value), np.nan)
        aggregate_block = functools.partial(_aggregate_jobs, edges, value, within, dag)
        for block, values in zip(blocks, block_map(aggregate_block, blocks), strict=True):
            exact[block] = values
        return exact, exact * 0.0
    if int(within.valid.sum()) <= options.exact_jobs:
        exact = aggregate(edges, value, within=within, dag=dag)
        return exact, exact * 0.0
    enclosed = aggregate_bounds(edges, value, within, dag=dag, jobs_per_cut=options.jobs_per_cut)
    return (enclosed.low + enclosed.high) / 2, (enclosed.high - enclosed.low) / 2


def _aggregate_jobs(edges: Dependencies, value: F8, within: Window, dag: Graph, jobs: I4) -> F8:
    """Compute the aggregates of the given valid jobs."""
    selected = np.zeros(len(value), bool)
    selected[jobs] = True
    subset = Window(within.submit_s, within.cut_s, selected)
    return aggregate(edges, value, within=subset, dag=dag)[jobs]


def _jobs(
    logs: Logs, templates: Templates, classes: Classification, edges: Dependencies, local: F8
) -> dict[str, object]:
    plain = ("job_id", "user", "queue", "organisation", "priority", "submit_s", "start_s")
    more = ("finish_s", "requested", "compute_s", "outcome")
    modes = pa.DictionaryArray.from_arrays(
        pa.array(classes.input_mode.astype(np.int32)), pa.array(INPUT_MODES)
    )
    return {
        **{name: logs.jobs[name] for name in plain + more},
        "template": templates.job_template,
        "recurring": classes.job_recurring,
        "polls": classes.job_polls,
        "input_mode": modes,
        "fan_in": edges.n_upstream().astype(np.int32),
        "fan_out": edges.n_downstream().astype(np.int32),
        "local_value": local,
    }


def _dependencies(edges: Dependencies, classes: Classification) -> pa.Table:
    return pa.table(
        {
            **{name: getattr(edges, name) for name in EDGE_COLUMNS},
            "recurring": classes.edge_recurring,
            "hard": classes.edge_hard,
            "polls": classes.edge_polls,
        }
    )


_DISTRIBUTIONS = (
    "runtime_s", "compute_s", "fan_in", "fan_out", "n_downstream", "local_value", "aggregate_value",
    "aggregate_compute_s", "value_efficiency",
)  # fmt: skip
"""Distributions of templates and users; columns ``<name>_p10`` to ``<name>_p90``."""


def _distributions(
    logs: Logs, jobs: dict[str, object], group: I4, n: int, counted: Mask
) -> dict[str, F8]:
    value = np.asarray(jobs["aggregate_value"])
    compute = np.asarray(jobs["aggregate_compute_s"])
    with np.errstate(invalid="ignore", divide="ignore"):
        efficiency = np.where(compute > 0, value / compute, np.nan)
    known = {
        "runtime_s": logs.run_s(),
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
    logs: Logs, templates: Templates, classes: Classification, jobs: dict[str, object]
) -> pa.Table:
    n, job_template = len(templates), templates.job_template
    first = np.full(n, logs.n_jobs, np.int64)
    np.minimum.at(first, job_template, np.arange(logs.n_jobs))
    everything = np.ones(logs.n_jobs, bool)
    rows = pa.array(first)
    return pa.table(
        {
            "template": pa.array(templates.name, pa.string()),
            "n_jobs": np.bincount(job_template, minlength=n).astype(np.int32),
            "recurring": classes.recurring,
            "periodic": classes.periodic,
            "polls": classes.template_polls,
            "never_missed": classes.never_missed,
            "interarrival_s": classes.interarrival_s,
            "interarrival_cv": classes.interarrival_cv,
            **{c: logs.jobs[c].take(rows) for c in ("user", "queue", "organisation")},
            "priority_p50": quantiles(logs.column("priority"), job_template, n, (0.5,))[:, 0],
            **_distributions(logs, jobs, job_template, n, everything),
        }
    )


def _users(logs: Logs, classes: Classification, jobs: dict[str, object]) -> pa.Table:
    """Return the distributions of each user's ad hoc jobs."""
    names, user = logs.names("user"), logs.column("user")
    adhoc = ~classes.job_recurring
    return pa.table(
        {
            "user": pa.array(names, pa.string()),
            "n_jobs": np.bincount(user, adhoc, len(names)).astype(np.int32),
            **_distributions(logs, jobs, user, len(names), adhoc),
        }
    )


def _costliest(templates: pa.Table) -> pa.Table:
    """Return the templates with the highest aggregate value of a run."""
    value = templates["aggregate_value_p50"].to_numpy()
    downstream_value = value - templates["local_value_p50"].to_numpy()
    order = np.argsort(-np.where(np.isnan(value), -np.inf, value), kind="stable")[:N_COSTLIEST]
    order = order[~np.isnan(value[order]) & (value[order] > 0)]
    return pa.table(
        {
            "template": order.astype(np.int32),
            "aggregate_value": value[order],
            "of_others": downstream_value[order],
            "n_downstream": templates["n_downstream_p50"].to_numpy()[order],
        }
    )


def _predictions(
    logs: Logs, templates: Templates, classes: Classification, edges: Dependencies
) -> dict[str, pa.Table]:
    """Train on a week, test on the next; thirds of a log shorter than three weeks."""
    submit_s = logs.column("submit_s")
    begin, end = float(submit_s[0]), float(submit_s[-1])
    week = min(7 * DAY_S, (end - begin) / 3)
    middle = end - 2 * week  # dependents of the test week's jobs may come up to a week later
    job_template, recurring = templates.job_template, classes.recurring
    uses = predict.first_uses(edges, job_template, submit_s, recurring)
    model = predict.learn(uses, job_template, submit_s, (middle - week, middle), len(recurring))
    in_test_week = (submit_s >= middle) & (submit_s < middle + week) & recurring[job_template]
    tested = predict.forecast(
        model, uses, job_template, np.flatnonzero(in_test_week), len(recurring)
    )
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
