"""Every bundled workload of jobs that keep coming: what is in use is what its cluster is offered.

While jobs arrive, at capacity 1.0 and first come, first served, within a tenth, for either of two
seeds. At the sizes that the options have, or those here: of fewer jobs each is too much of the
whole, and a policy that leaves room free while large tasks wait uses less.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import policies
import sim
from sweep.execution.inputs import Inputs
from sweep.grid import clusters, grid
from sweep.grid.options import Options
from tests import without
from tests.sweep.small import request

OPEN = {
    "alibaba_synth": ("trace.jobs=300",),
    "build_dags": ("trace.jobs=100",),
    "cosmos": ("trace.scale=0.02",),
    "everything": (),
    "production_dags": (),
    "production_dags_alike": (),
    "production_dags_bounds": (),
    "production_stream": (),
    "request_dags": ("trace.jobs=300",),
    "slearn_2sigma": (),
    "slearn_google2011": (),
    "slearn_google2019": (),
    "slearn_gtrace19_dag": (),
    "slo_jobs": (),
}
OF_FILES = {
    "alibaba_hour": ("trace.transforms.hour_of.jobs=3000",),
    "alibaba_hour_printed": ("trace.transforms.hour_of.jobs=3000",),
    "alibaba_hour_rewired": ("trace.transforms.hour_of.jobs=3000",),
    "alibaba_small_hour": (),
    "bqetl": (),
    "slearn_authors": (),
    "slearn_google2011_real": (),
    "tpcds_burst": (),
    "tpcds_burst_requested": (),
    "tpcds_stream": (),
    "tpcds_stream_requested": (),
    "tpcds_stream_25s": (),
    "tpcds_stream_inputs": (),
    "tpcds_stream_unscaled": (),
    "tpcds_two_queues": (),
    "tpcds_two_queues_requested": (),
    "tpch_burst": (),
    "tpch_burst_requested": (),
    "tpch_mix_stream": (),
    "tpch_stream": (),
    "tpch_stream_requested": (),
    "tpch_stream_25s": (),
    "tpch_stream_unscaled": (),
}
CLOSED = {
    "jockey_fig6a", "jockey_fig6b", "jockey_fig6c", "scope_jobs", "scope_jobs_tails", "tpcds",
    "tpch", "tpch_mix",
}  # fmt: skip
"""A job, or all of them at one instant."""
OWN = {
    "alibaba2018", "google2011", "parquet", "slearn_google2011_walls", "spark_tpch", "swf", "tpc",
    "sacct", "slurm_site", "slurm_jobcomp", "table", "programs", "k8s_filled", "k8s_gpu2023",
    "k8s_stream", "spark_eventlog", "wfcommons", "hard_dags", "kubernetes", "argo", "ray",
    "training", "kueue_site", "philly", "helios", "acme", "pai2020", "spot_gpu2026", "google2019",
    "azure_vm", "pm100", "f_data", "surf_lisa", "wta", "training_elastic", "training_metered",
    "elastic_metered", "shared_gpus",
}  # fmt: skip
"""Those that a user gives a file of their own (or, walls: one task a job, for statistics; or, k8s:
that keep most machines idle, or fill them, or are for a few; or, training: whose jobs run longer on
some machines than their load counts)."""


LONG = {
    "alibaba_hour_printed", "alibaba_hour_rewired", "bqetl", "cosmos", "production_stream",
    "slearn_google2011_real", "slearn_gtrace19_dag", "tpcds_stream_inputs", "tpcds_two_queues",
    "tpch_mix_stream",
}  # fmt: skip
"""Those of which a like one is tried anyway, and that take longest."""


def test_every_bundled_trace_is_known_here() -> None:
    known = {*OPEN, *OF_FILES, *CLOSED, *OWN}
    assert set(without.present(known)) == set(Options.from_folders([]).names("trace"))


def _marked(traces: Iterable[str]) -> list[object]:
    return [pytest.param(t, marks=pytest.mark.long) if t in LONG else t for t in traces]


@pytest.mark.parametrize("trace", _marked(OPEN))
@pytest.mark.slow
@pytest.mark.long
def test_what_is_in_use_is_what_is_offered(trace: str, tmp_path: Path) -> None:
    _check(trace, OPEN[trace], tmp_path)


@pytest.mark.parametrize("trace", _marked(OF_FILES))
def test_of_real_traces_too(trace: str, tmp_path: Path, shared_traces: Path) -> None:
    _check(trace, (*OF_FILES[trace], f"paths.traces={shared_traces}"), tmp_path)


def _check(trace: str, words: tuple[str, ...], folder: Path) -> None:
    command_words = (f"trace={trace}", "policy=fifo", "capacity=1.0", "seed=0,1", *words)
    inputs = Inputs(folder)
    for cell in grid.build(request(command_words)).cells:
        workload = inputs.workload(inputs.workload_id(cell))
        built = clusters.build_for(workload, cell.cluster, cell.capacity)
        offered = built.facts["offered_load"]
        if cell.cluster["count"] is None:
            slots = cell.cluster["shape"] == "slots"
            assert offered == pytest.approx(cell.cluster["usual_load"], rel=0.02 if slots else 1e-6)
        run = sim.simulate(workload, built.cluster, policies.build("fifo"), record="tasks")
        assert run.metrics["utilization"] == pytest.approx(offered, rel=0.1)
