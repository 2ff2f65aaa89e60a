"""Metrics of a run: their definitions, and one call that computes them all.

A module of this package declares its metrics in ``METRICS`` and computes them in
``compute(run, bounds)``: a new file is a new family of metrics.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sim.base.plugins import Plugins
from sim.engine.record import Run
from sim.metrics import groups
from sim.metrics.common import FRACTION, POSITIVE, Metric
from sim.metrics.jobs import speedups

__all__ = ["METRICS", "Metric", "compute", "metric", "names", "speedups"]

MODULES_LOADED = ("sim.metrics",)  # imported by name (`sim.base.sources.meaning`)
MODULES_INSTALLED = ("metrics",)
FAMILIES = Plugins(
    "family of metrics", __name__, "compute", "metrics", helpers=("kernels", "common", "groups")
)

UTILIZATION = "utilization_"
"""Prefix of the metrics of single resources of the cluster."""

_FIRST = (
    "jct_mean_s",
    "jct_p50_s",
    "jct_p90_s",
    "jct_p95_s",
    "jct_p99_s",
    "slowdown_mean",
    "slowdown_p95",
    "bounded_slowdown_mean",
    "wait_mean_s",
    "wait_p50_s",
    "wait_p90_s",
    "wait_p95_s",
    "wait_p99_s",
    "makespan_s",
    "utilization",
    "utilization_makespan",
    "jain_10s",
    "jain_60s",
    "jain_240s",
    "jobs_failed",
    "gap_lb_p50",
    "gap_lb_p90",
    "value_attained",
    "deadlines_missed",
    "utility",
    "allocation_above_oracle",
    "prediction_error_p50",
    "prediction_error_p90",
    "tasks_local",
    "jct_speedup_mean",
    "jct_speedup_p50",
)
"""First metrics in tables, in this order; others follow."""

_FAMILIES = FAMILIES.working()
_ALL = {name: m for family in _FAMILIES.values() for name, m in family.METRICS.items()}
METRICS: dict[str, Metric] = {
    name: _ALL[name] for name in (*_FIRST, *sorted(_ALL.keys() - {*_FIRST}))
}

ALONE_METRICS: dict[str, Metric] = {
    "makespan_mean_s": Metric("s", "lower", "mean makespan of jobs that run alone", span=POSITIVE),
    "gap_tight_lb_p50": Metric(
        "1", "lower", "median of makespan over the tighter bound - 1", span=POSITIVE
    ),
    "gap_tight_lb_p90": Metric(
        "1", "lower", "90th percentile of makespan over that bound - 1", span=POSITIVE
    ),
}
"""Metrics added by `sim.evaluators.alone`."""

STREAM_METRICS: dict[str, Metric] = {
    "jct_mean_lb_s": Metric(
        "s", "lower", "lower bound on the mean JCT of any schedule", span=POSITIVE
    ),
    "gap_lb_mean": Metric("1", "lower", "mean JCT over that bound - 1", span=POSITIVE),
}
"""Metrics added by `sim.evaluators.stream`."""


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute every metric that needs no baseline.

    A job is *done* if it finished and did not fail; JCT is its finish minus its submission, which
    is later than in the workload if it waited for inputs.

    - ``jct_mean_s``, ``jct_p50_s``, ``jct_p90_s``, ``jct_p95_s``, ``jct_p99_s``: mean and
      percentiles (linear interpolation) of JCT over the jobs done.
    - ``slowdown_mean``, ``slowdown_p95``: mean and percentile over the jobs done of JCT over
      critical path length, the job's duration alone on an unlimited cluster; a job of length 0 is
      left out.
    - ``wait_mean_s``, ``wait_p50_s``, ``wait_p90_s``, ``wait_p95_s``, ``wait_p99_s``: mean and
      percentiles over the jobs done of start of the first task minus submission.
    - ``makespan_s``: last finish of the jobs done minus first submission of all.
    - ``utilization_<resource>``: the resource that tasks hold, launch lags included, over capacity,
      on average from the first submission to the last (if all jobs are submitted at one instant, to
      the last finish);
      ``utilization``: the largest of them. ``utilization_used``: the largest share that tasks truly
      use, where they hold what they request. See `sim.metrics.usage.utilization`.
    - ``utilization_makespan``: Σ duration × demand of the tasks done, over capacity × makespan, of
      the resource with the largest value.
    - ``jain_10s``, ``jain_60s``, ``jain_240s``: Jain's index of the queues' allocations over
      their shares, averaged over windows of that length in which every queue has demand. See
      `sim.metrics.fairness.jain`.
    - ``finish_time_fairness_p95``, ``finish_time_fairness_max``, ``jobs_unfair``: JCT over the
      least time on an equal share of the cluster, and the fraction of jobs that take longer. See
      `sim.metrics.finish_times`.
    - ``jobs_failed``: failed jobs over all jobs.
    - ``gap_lb_p50``, ``gap_lb_p90``: percentiles over the jobs done of JCT / ``new_lb`` - 1, with
      ``new_lb`` of `sim.bounds.lower_bound`; a job whose bound is 0 is left out.
    - ``value_attained``: of all downloads of the workload, the fraction at or after the completion
      of their job; a failed job attains none. NaN without downloads.
    - ``deadlines_missed``: of the jobs with a deadline, the fraction that finished after it or
      never; if the deadline changes, the one in force when the job ends counts. NaN without
      deadlines.
    - ``utility``: mean over the jobs with a deadline of Jockey's utility of their finish (EuroSys
      2012, §5.1): 1 up to the deadline, -1 ten minutes later, -1,000 a thousand minutes later, in
      straight lines that go on; a job that never finishes counts as a thousand minutes late. NaN
      without deadlines.
    - ``allocation_above_oracle``: of the tokens that the policy guaranteed, the fraction above
      ceil(CPU time / deadline), over the jobs that met their deadlines; the CPU time of a job is
      the sum of its tasks' durations, or ``jobs.cpu_s`` if known. See
      `sim.metrics.tokens.above_oracle`. NaN if the policy sets no limits.
    - ``prediction_error_p50``, ``prediction_error_p90``: percentiles of |estimate - size| / size
      over the jobs done whose size the policy estimated (`sim.engine.plan.Plan.estimate_s`); the
      size is the sum of its tasks' durations; a job of size 0 is left out.
    - ``bounded_slowdown_mean``: mean over the jobs done of max(1, JCT / max(run, 10 s)), with run
      = finish - start; only for workloads of rigid jobs, all of whose tasks start together. See
      `sim.metrics.rigid`.
    - ``tasks_local``: of the tasks whose input lies on some machine
      (`sim.workload.schema.INPUT_HOME`), the fraction that ran there. NaN without such tasks.

    - ``stops_mean``: mean over jobs of the number of instants at which running tasks of them were
      stopped: preempted, evicted, at a limit, by a failure; ``work_lost_mean_s``: mean over jobs of
      the running time of their tasks that no checkpoint kept; ``work_lost``: of all work that ran,
      the fraction lost so, of the bottleneck. See `sim.metrics.stops`.
    - ``goodput``: work of the jobs done, at speed 1 and their greatest width, until the last
      submission, over capacity × that time, of the bottleneck. See `sim.metrics.goodput`.
    - ``outages_met``, ``slow_periods_met``, ``reservations_met``: how many of the cluster's are in
      the run, if it has some (`sim.metrics.troubles`).
    - ``devices_unallocated``, ``fragmentation``: on machines with devices such as GPUs, the share
      of devices without a task when the last job is submitted; and the share of free devices that
      a task like the workload's can't use, on average over submissions. See
      `sim.metrics.devices.device_samples`.

    A mean or percentile over no jobs is NaN.

    Parameters
    ----------
    run : Run
        The run; times of events that did not happen are NaN.
    bounds : mapping of str to (J,) float64
        Lower bounds of its jobs, s, with ``cp_len`` and ``new_lb`` (`sim.bounds.bound_arrays`).

    Returns
    -------
    dict of str to float
        By metric name.
    """
    computed: dict[str, float] = {}
    for family in _FAMILIES.values():
        computed |= family.compute(run, bounds)
    first = [name for name in METRICS if name in computed]
    return {name: computed[name] for name in (*first, *sorted(computed.keys() - {*first}))}


def names(resources: tuple[str, ...] = ()) -> list[str]:
    """List the names of all metrics, those of the given resources included."""
    return [*METRICS, *(UTILIZATION + r for r in resources)]


def metric(name: str) -> Metric:
    """Look a metric up by name.

    Raises
    ------
    InputError
        If the name is unknown; suggests the closest.
    """
    for metrics in (METRICS, ALONE_METRICS, STREAM_METRICS):
        if name in metrics:
            return metrics[name]
    if grouped := groups.split(name):
        return groups.metric(*grouped)
    if name.startswith(UTILIZATION) and len(name) > len(UTILIZATION):
        resource = name.removeprefix(UTILIZATION)
        return Metric(
            "1",
            "higher",
            f"share of {resource} that tasks hold, on average while jobs arrive",
            span=FRACTION,
        )
    raise InputError(
        unknown("metric", name, [*METRICS, f"{UTILIZATION}<resource>"]), rule="unknown metric"
    )
