"""Sweeps in an allocation of a real Slurm, whose daemons run on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.real import processes
from benchmarks.real.slurm import cluster
from benchmarks.real.slurm.configure import Settings

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
GRID = (
    *("experiment=demo", "policy=fifo,las", "capacity=0.7", "trace.jobs=200", "tracking=none"),
    *("name=s", "launcher=slurm", "launcher.nodes=2", "launcher.cpus_per_node=1"),
)


class Site:
    """Two nodes of one CPU, and a folder in which commands are given."""

    def __init__(self, started: cluster.Cluster, folder: Path) -> None:
        self.cluster, self.folder = started, folder
        self.results = folder / "results"
        folder.mkdir()

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start ``python -m sweep``."""
        environment = {**os.environ, **self.cluster.environment, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "sweep", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, text=True, start_new_session=True, **pipes
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run ``python -m sweep`` to its end; return exit code, output and notes."""
        process = self.start(*words)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def jobs(self) -> list[str]:
        """Numbers of the jobs that have not ended."""
        return self.cluster.command("squeue", "--noheader", "--format=%i").split()

    def wait(self, is_so: Callable[[], bool], within_s: float = 120.0) -> None:
        """Wait until something is so."""
        until_s = time.monotonic() + within_s
        while not is_so():
            assert time.monotonic() < until_s, "it did not come in time"
            time.sleep(0.2)

    def n_cached(self) -> int:
        """Number of cells that the journal has as done."""
        lines = "".join(file.read_text() for file in (self.results / "journal").glob("*.jsonl"))
        return lines.count('"event": "cell"') + lines.count('"event":"cell"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if cluster.missing():
        pytest.skip(f"{', '.join(cluster.missing())} are not installed")
    folder = tmp_path_factory.mktemp("slurm")
    with cluster.running(Settings("backfill", "", "basic", 2, speed=1), folder / "c") as started:
        yield Site(started, folder / "login")


def test_a_sweep_runs_on_all_nodes_as_in_this_process(site: Site) -> None:
    code, out, err = site.run(*GRID, "seed=range(0,4)")
    assert code == 0, err
    assert "is submitted" in err
    assert "8 of 8 cells done" in err
    assert out.rstrip().endswith(str(next((site.results / "sweeps").iterdir())))
    (cells,) = (site.results / "sweeps").glob("*/cells.parquet")
    inline = ("launcher=inline", "paths.results=inline")
    words = [word for word in GRID if not word.startswith("launcher")]
    assert site.run(*words, "seed=range(0,4)", *inline)[0] == 0
    (expected,) = (site.folder / "inline" / "sweeps").glob("*/cells.parquet")
    metrics = ["key", "jct_mean_s", "jct_p99_s", "gap_lb_p50", "makespan_s"]
    assert pq.read_table(cells, columns=metrics).equals(pq.read_table(expected, columns=metrics))
    code, out, err = site.run(*GRID, "seed=range(0,4)")  # nothing to run: no job
    assert code == 0
    assert "every cell is cached" in err
    assert "is submitted" not in err
    site.wait(lambda: not site.jobs())
    site.wait(lambda: not ray_processes(site))


def ray_processes(site: Site) -> list[int]:
    """Processes of Ray that belong to the site's jobs."""
    members = processes.members(f"SLURM_CONF={site.cluster.folder}/slurm.conf")
    names = {pid: command(pid) for pid in members}
    return [pid for pid, name in names.items() if "raylet" in name or "gcs_server" in name]


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def test_seeds_that_follow_from_cells_run_in_the_same_job(site: Site) -> None:
    own = ("seeds=auto", "seeds_width=0.01", "seeds_max=12", "name=auto")
    code, _, err = site.run(*GRID, *own)
    assert code == 0, err
    assert err.count("is submitted") == 1
    words = [word for word in GRID if not word.startswith("launcher")]
    assert site.run(*words, *own, "launcher=inline", "paths.results=inline")[0] == 0
    folders = (site.results, site.folder / "inline")
    tables = [next(folder.glob("sweeps/auto-*/cells.parquet")) for folder in folders]
    submitted, inline = (pq.read_table(table, columns=["key", "jct_mean_s"]) for table in tables)
    assert submitted.equals(inline)
    assert inline.num_rows > 2 * 5  # more than the first seeds


@pytest.mark.parametrize(
    ("number", "seeds"), [("SIGINT", "range(10,60)"), ("SIGHUP", "range(200,240)")]
)
def test_a_login_node_that_goes_leaves_the_job_and_the_same_command_finds_it(
    site: Site, number: str, seeds: str
) -> None:
    words = (*GRID, f"seed={seeds}", "trace.jobs=2000")
    site.wait(lambda: not site.jobs())
    first = site.start(*words)
    site.wait(lambda: bool(site.jobs()))
    (job,) = site.jobs()
    os.killpg(first.pid, signal.Signals[number])
    _, err = first.communicate(timeout=60)
    if number == "SIGINT":
        assert first.returncode == 130
        assert f"job {job} goes on" in err
    else:
        assert first.returncode == -signal.SIGHUP
    assert site.jobs() == [job]
    code, _, err = site.run(*words)
    assert code == 0, err
    assert f"job {job} of the same sweep has not ended" in err
    assert "cells done" in err


def test_a_job_that_slurm_ends_is_said_and_the_same_command_goes_on(site: Site) -> None:
    words = (*GRID, "seed=range(100,160)", "trace.jobs=2000")
    site.wait(lambda: not site.jobs())
    before = site.n_cached()
    first = site.start(*words)
    site.wait(lambda: site.n_cached() > before)
    site.cluster.command("scancel", *site.jobs())
    _, err = first.communicate(timeout=120)
    assert first.returncode == 2
    assert "CANCELLED" in err or "interrupted" in err
    assert "the same command goes on" in err
    code, _, err = site.run(*words)
    assert code == 0, err
    n_cached = int(err.partition(" cells, ")[2].split()[0])
    assert 0 < n_cached < 120


def test_what_slurm_refuses_is_said_in_a_line(site: Site) -> None:
    code, _, err = site.run(*GRID, "launcher.partition=nowhere", "seed=7")
    assert code == 2
    assert "error: sbatch refuses the job: " in err
    assert "nvalid partition" in err
    assert not list(site.results.glob("slurm/*.exit.tmp"))
