"""Properties of a real Ray: memory shared by workers, a cluster that existed before."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Command

pytestmark = pytest.mark.e2e


@pytest.mark.long
def test_a_large_workload_is_shared_in_memory(packages: Path) -> None:
    script = Path(__file__).with_name("shared_memory.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": f"{packages}{os.pathsep}{script.parent}"},
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    n_made, cells = json.loads(done.stdout.splitlines()[-1])
    assert n_made == 1
    assert [error for error, _ in cells] == [None] * 8
    metrics = [metric for _, metric in cells]
    assert len({metric["pid"] for metric in metrics}) == 2
    assert all(metric["size"] == 200e6 for metric in metrics)
    assert len({metric["total"] for metric in metrics}) == 1
    # a worker without a workload has about 100 MB of its own
    assert max(metric["private_bytes"] for metric in metrics) < 200e6


@pytest.fixture
def cluster() -> Iterator[dict[str, str]]:
    """Start a cluster of our own, apart from any other; return its environment variables."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # a short name: sockets lie in there
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_TMPDIR": folder,
        }
        process = subprocess.Popen(
            [
                *(str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"),
                *(f"--port={port}", "--num-cpus=2", "--include-dashboard=false"),
                *("--disable-usage-stats", "--object-store-memory=200000000"),
            ],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "Ray runtime started" in line:
                break
        yield environment
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=900)


@pytest.mark.long
def test_an_existing_cluster(command: Command, cluster: dict[str, str]) -> None:
    words = (
        "policy=fifo,slow", "seed=0,1", "trace=alibaba_synth", "trace.jobs=50", "tracking=none",
        f"--config-dir={command.user}",
    )  # fmt: skip
    ran = command(*words, "launcher=ray", "launcher.address=auto", **cluster)
    assert ran.code == 0, ran.err
    inline = command(*words, "launcher=inline", "paths.results=other")
    on_ray = (ran.folder / "cells.parquet").read_bytes()
    assert on_ray == (inline.folder / "cells.parquet").read_bytes()


@pytest.mark.long
def test_a_trace_is_parsed_once_over_two_sweeps(
    command: Command, cluster: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log.swf"
    line = "{} {} 0 {} 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1\n"
    log.write_text(
        "; MaxProcs: 4\n" + "".join(line.format(job, job, 9 + job % 3) for job in range(30))
    )
    stamp = log.stat()
    words = ("trace=swf", f"trace.path={log}", "cluster.count=4", "tracking=none")
    first = command(*words, "policy=fifo", "launcher=ray", "launcher.address=auto", **cluster)
    assert first.code == 0, first.err
    inline = command(*words, "policy=fifo", "launcher=inline", "paths.results=other")
    on_ray = (first.folder / "cells.parquet").read_bytes()
    assert on_ray == (inline.folder / "cells.parquet").read_bytes()
    # the same name, size and time: parsing it again would find no job
    log.write_text("x" * (stamp.st_size - 1) + "\n")
    os.utime(log, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    second = command(*words, "policy=fifo,sjf")
    assert second.code == 0, second.err
    assert [row["status"] for row in second.rows] == ["cached", "done"]
    log.touch()
    third = command(*words, "policy=fifo")
    assert third.code == 2
    assert f"{log}:1: no job is left" in third.err


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "auto"])
@pytest.mark.long
def test_an_unreachable_cluster_is_reported(command: Command, tmp_path: Path, address: str) -> None:
    words = ("policy=fifo", "trace=alibaba_synth", "trace.jobs=20", "tracking=none")
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1")
    options = ("launcher=ray", f"launcher.address={address}")
    ran = command(*words, *options, RAY_TMPDIR=str(tmp_path))
    assert ran.code == 2
    assert f"no Ray cluster answers at launcher.address={address}" in ran.err
    assert "Traceback" not in ran.err


OUTER_JOB = json.dumps(
    {"runtime_env": {"working_dir": "gcs://_ray_pkg_0123456789abcdef.zip"}, "metadata": {}}
)
"""Configuration of a submitted job whose package the cluster does not have."""
FEW = ("policy=fifo", "seed=0,1", "trace=alibaba_synth", "trace.jobs=20", "tracking=none")


@pytest.mark.long
def test_switches_of_python_and_an_outer_job_do_not_reach_a_local_ray(command: Command) -> None:
    """Any of them alone kept it from starting, or lost every worker."""
    ran = command(
        *FEW,
        "launcher=local",
        PYTHONWARNINGS="error",
        PYTHONOPTIMIZE="2",
        RAY_ADDRESS="127.0.0.1:1",
        RAY_REDIS_ADDRESS="127.0.0.1:1",
        RAY_JOB_CONFIG_JSON_ENV_VAR=OUTER_JOB,
        RAY_TMPDIR="",
        TMPDIR=os.path.relpath("/tmp", command.folder),
    )
    assert ran.code == 0, ran.err
    assert [row["status"] for row in ran.rows] == ["done", "done"]
    assert "did not come up" not in ran.err


@pytest.mark.long
@pytest.mark.parametrize(
    ("launcher", "environment", "named"),
    [
        ("local", {"TMPDIR": "/tmp/" + "t" * 107}, ("TMPDIR=/tmp/ttt", "set RAY_TMPDIR to a")),
        ("local", {"RAY_TMPDIR": "/tmp/" + "t" * 60}, ("RAY_TMPDIR=/tmp/ttt", "a shorter one")),
        ("ray", {"RAY_ADDRESS": "http://127.0.0.1:1"}, ("RAY_ADDRESS=http:", "unset RAY_ADDRESS")),
        ("ray", {"RAY_ADDRESS": "127.0.0.1:1"}, ("RAY_ADDRESS=127.0.0.1:1", "unset RAY_ADDRESS")),
        ("local", {"PYTHONUTF8": "0", "LC_ALL": "C"}, ("PYTHONUTF8=0, LC_ALL=C", "PYTHONUTF8=1")),
    ],
)
def test_a_variable_to_change_is_named_at_once(
    command: Command, launcher: str, environment: dict[str, str], named: tuple[str, str]
) -> None:
    command.folder = command.folder / "für"
    command.folder.mkdir()
    ran = command(*FEW, f"launcher={launcher}", timeout=90, **environment)
    assert ran.code == 2
    for words in named:
        assert words in ran.err
    assert "Traceback" not in ran.err
    assert "retry" not in ran.err


@pytest.mark.long
def test_an_outer_job_of_another_cluster_is_named(
    command: Command, cluster: dict[str, str]
) -> None:
    outer = {"RAY_JOB_CONFIG_JSON_ENV_VAR": OUTER_JOB}
    ran = command(*FEW, "launcher=ray", "launcher.address=auto", **cluster, **outer)
    assert ran.code == 2
    assert "Ray can't set up the environment of tasks there (" in ran.err
    assert "gcs://_ray_pkg_0123456789abcdef.zip" in ran.err
    assert "RAY_JOB_CONFIG_JSON_ENV_VAR" in ran.err
    assert "killed for its memory" not in ran.err


@pytest.mark.long
def test_a_cell_that_hangs_and_a_worker_that_dies(command: Command) -> None:
    words = (
        "policy=slow,moody", "policy.seconds=600", "policy.mood=dies", "seed=0,1",
        "trace=alibaba_synth", "trace.jobs=20", "tracking=none", "cell_timeout_s=20",
        f"--config-dir={command.user}",
    )  # fmt: skip
    ran = command(*words, timeout=900)
    assert ran.code == 1, ran.err
    by_cell = {(row["policy"], row["seed"]): row for row in ran.rows}
    assert {name for name, row in by_cell.items() if row["status"] == "done"} == {("moody", 0)}
    for seed in (0, 1):
        assert by_cell["slow", seed]["error_type"] == "CellTimeoutError"
        assert "time.sleep(self.seconds)" in by_cell["slow", seed]["error_traceback"]
    dies = by_cell["moody", 1]
    assert (dies["error_stage"], dies["error_type"]) == ("worker", "WorkerCrashedError")
    assert "its worker died 6 times" in dies["error_message"]
    assert ran.err.count("a worker died while running") == 1
    assert "(raylet)" not in ran.out + ran.err
