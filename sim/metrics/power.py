"""Energy of a run, and what it costs in carbon and money."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.cluster.cluster import Cluster
from sim.cluster.faults import KNOWN_LOST, LOST
from sim.cluster.power import CARBON, OTHERS, PRICE, STEADY, Power, Series, Table
from sim.cluster.sizing import stage_demands
from sim.engine.record import Run
from sim.metrics.common import NAN, POSITIVE, Metric
from sim.workload.schema import WATTS
from sim.workload.tables import column_or_nan

ENERGY, EMISSIONS, COST = "energy_kwh", "carbon_kg", "cost"
METRICS = {
    ENERGY: Metric("kWh", "lower", "energy of all machines during the run", span=POSITIVE),
    EMISSIONS: Metric("kg", "lower", "carbon dioxide of that energy", span=POSITIVE),
    COST: Metric("1", "lower", "price of that energy and of the machines' hours", span=POSITIVE),
}
_J_PER_KWH, _S_PER_H = 3.6e6, 3600.0
_CHUNK = 2**16
"""Number of records processed together."""


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute energy, carbon and cost of a cluster whose power is metered (`Cluster.with_power`).

    ``energy_kwh``: from the first submission to the end of the last job, or of the last stopped
    attempt. Machines that are lost draw and cost nothing meanwhile; drained ones do. A task draws
    while it runs, also in attempts that stop: its share of what a full machine draws above an idle
    one, or ``stages.watts``. ``carbon_kg``: that of this energy when it is drawn; ``cost``: the
    price of it, and of the hours of the machines. Both only where their numbers are known. NaN
    without records of tasks.
    """
    power = run.cluster.power
    if power is None:
        return {}
    series = {ENERGY: STEADY}
    series |= {EMISSIONS: power.series[CARBON]} if CARBON in power.series else {}
    has_price = PRICE in power.series or any(power.machine_h.values())
    if run.records is None or run.stopped is None or not len(run.job_submit):
        return dict.fromkeys([*series, *([COST] if has_price else [])], NAN)
    if PRICE in power.series:
        series[COST] = power.series[PRICE]
    kwh = {name: _joules(run, power, own) / _J_PER_KWH for name, own in series.items()}
    if EMISSIONS in kwh:
        kwh[EMISSIONS] /= 1000.0
    if has_price:
        hours = _up_s(run, STEADY) / _S_PER_H
        machines = float(np.sum(hours * by_machine(power.machine_h, run.cluster)))
        kwh[COST] = kwh.get(COST, 0.0) + machines
    return kwh


def _joules(run: Run, power: Power, series: Series) -> float:
    """Integrate the power of all machines times a series, J."""
    zero_s = float(run.workload.columns.job_submit[0])
    idle_w, busy_w = (by_machine(t, run.cluster) for t in (power.idle_w, power.busy_w))
    total = float(np.sum(idle_w * _up_s(run, series)))
    per_share = _watts_per_unit(run, power, busy_w - idle_w)
    own_w = _own_watts(run)
    demand = stage_demands(run.workload.columns, run.cluster)
    resource = resource_of(power, run.cluster)
    for task, machine, begin_s, end_s, count in _attempts(run):
        stage = run.workload.columns.stages_of(task)
        watts = demand[stage, resource[machine]] * per_share[machine]
        if own_w is not None:
            watts = np.where(np.isfinite(own_w[stage]), own_w[stage], watts)
        lasting = series.integral(end_s - zero_s) - series.integral(begin_s - zero_s)
        total += float(np.sum(watts * count * lasting))
    return total


def by_machine(table: Table, cluster: Cluster) -> F8:
    """Return a table's number for each machine, (M,): of all slots together for a pool."""
    if cluster.unit:
        return np.array([table.get(OTHERS, 0.0) * float(cluster.capacity[0, 0])])
    names = cluster.classes or ("",)
    code = cluster.machine_class if len(cluster.machine_class) else np.zeros(1, np.int32)
    number = np.array([table.get(name, table.get(OTHERS, 0.0)) for name in names])
    return np.broadcast_to(number[code], (cluster.n_machines,))


def resource_of(power: Power, cluster: Cluster) -> I8:
    """Return the resource, a column of the cluster's, by which each machine's power rises."""
    name = power.resource if power.resource is not None else cluster.devices
    has_any = cluster.capacity > 0
    first: I8 = np.argmax(has_any, axis=1)
    if name is None:
        return first
    r = cluster.resources.index(name)
    return np.where(has_any[:, r], r, first)


def _watts_per_unit(run: Run, power: Power, above_idle_w: F8) -> F8:
    """Return the power above idle for a unit of what raises it, of each machine, (M,)."""
    rows = np.arange(run.cluster.n_machines)
    amount = run.cluster.capacity[rows, resource_of(power, run.cluster)]
    per_unit: F8 = above_idle_w / np.where(amount > 0, amount, np.inf)
    return per_unit


def _own_watts(run: Run) -> F8 | None:
    """Return what a task of each stage draws where that is known, else NaN, (G,) W."""
    stages = run.workload.columns.features.stages
    return column_or_nan(stages, WATTS.name) if WATTS.name in stages.column_names else None


def _attempts(run: Run) -> Iterator[tuple[I4 | I8, I4, F8, F8, I8]]:
    """Yield first task, machine, begin, end and number of tasks of attempts that ran."""
    records, stopped = run.records, run.stopped
    assert records is not None
    assert stopped is not None
    for first in range(0, len(records.start_s), _CHUNK):
        rows = slice(first, min(first + _CHUNK, len(records.start_s)))
        begin_s, end_s = records.times(rows)
        task = np.arange(rows.start, rows.stop) if records.task is None else records.task[rows]
        count = np.ones(len(begin_s), np.int64)
        if records.task is not None:
            count = records.counts(rows).astype(np.int64)
        ran = np.flatnonzero(end_s > begin_s)
        yield task[ran], records.machine[rows][ran], begin_s[ran], end_s[ran], count[ran]
    ones = np.ones(len(stopped.task), np.int64)
    yield stopped.task, stopped.machine, stopped.start_s, stopped.stop_s, ones


def _up_s(run: Run, series: Series) -> F8:
    """Integrate a series over the time that each machine is up during the run, (M,)."""
    assert run.stopped is not None
    zero_s = float(run.workload.columns.job_submit[0])
    ends = np.concatenate([run.job_finish, run.stopped.stop_s])
    length_s = float(np.nanmax(ends, initial=zero_s)) - zero_s
    up = np.full(run.cluster.n_machines, float(series.integral(length_s) - series.integral(0.0)))
    outages, end_s = run.cluster.outages, np.zeros(len(up))
    lost = np.flatnonzero((outages.kind == LOST) | (outages.kind == KNOWN_LOST))
    for i in lost[np.argsort(outages.down_s[lost], kind="stable")].tolist():
        m = outages.machine[i]  # it may be lost in both ways at once
        begins_s = max(min(float(outages.down_s[i]) - zero_s, length_s), end_s[m])
        end_s[m] = max(min(float(outages.up_s[i]) - zero_s, length_s), begins_s)
        up[m] -= float(series.integral(end_s[m]) - series.integral(begins_s))
    return up
