"""Clusters that a trace tells: ``trace=slurm_site`` runs on the site's own."""

from __future__ import annotations

import pytest

from sim.base.errors import InputError
from sim.traces import cluster_of
from tests.sim.traces.test_slurm_site import folder
from tests.sweep.grid.test_planner import cells


def test_a_site_runs_on_its_own_cluster_with_what_the_words_change(tmp_path):
    path = folder(tmp_path / "site")
    own = cluster_of("slurm_site", path)
    (cell,) = cells("trace=slurm_site", f"trace.path={path}", "policy=fifo", "seed=0")
    assert {key: cell.cluster[key] for key in own} == own
    assert cell.cluster["load"] is None
    words = ("policy=fifo", "seed=0", "cluster.partitions.quick.tier=7", "what_if.nodes=gpu:+2")
    today, more = cells(f"trace=a:slurm_site:{path}", *words)
    assert today.cluster["partitions"]["quick"] == own["partitions"]["quick"] | {"tier": 7}
    assert (more.cluster["extra"], more.cluster["extra_kind"]) == (2, "gpu")
    (slots,) = cells(f"trace=a:slurm_site:{path}", *words[:2], "cluster=slots")
    assert slots.cluster["shape"] == "slots"


def test_its_times_count_from_the_window_of_each_cell(tmp_path):
    path = folder(tmp_path / "site")
    words = ("trace=slurm_site", f"trace.path={path}", "policy=fifo", "seed=0")
    whole, later = cells(*words, "trace.begin_s=0,600")
    ends_s = [cell.cluster["outages"][0]["until_s"] for cell in (whole, later)]
    assert ends_s[0] - ends_s[1] == 600.0


def test_a_trace_that_tells_no_cluster_is_refused(tmp_path):
    log = folder(tmp_path / "site") / "sacct.txt"
    with pytest.raises(InputError, match="this one tells none"):
        cells("trace=sacct", f"trace.path={log}", "cluster=from_trace", "policy=fifo", "seed=0")
    with pytest.raises(InputError, match="this one tells none"):
        cells("trace=alibaba_synth", "cluster=from_trace", "policy=fifo", "seed=0")
    with pytest.raises(InputError, match="needs a file"):
        cells("trace=slurm_site", "policy=fifo", "seed=0")
    with pytest.raises(InputError, match="no such file"):
        cells("trace=slurm_site", f"trace.path={tmp_path / 'no'}", "policy=fifo", "seed=0")
