"""Run sleeping tasks on several raylets of 127.0.0.1, and return a table of what happened."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.real import processes
from benchmarks.real.ray.workload import N_NODES, NODE, SleepingTask

DRIVER = Path(__file__).with_name("driver.py")
TIMEOUT_S = 300


def run(tasks: Sequence[SleepingTask]) -> str:
    """Run the tasks on a cluster of `N_NODES` raylets; return a table of jobs, CSV.

    Ray's files lie in a temporary folder; all its processes end with this function, also when it is
    interrupted.

    Raises
    ------
    RuntimeError
        If the driver fails or takes longer than five minutes, with the end of its output.
    """
    text = "".join(f"{t.kind} {t.submit_s} {t.sleep_s} {t.cpus} {t.disks}\n" for t in tasks)
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        environment = os.environ | {
            "RAY_TMPDIR": folder, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
        }  # fmt: skip
        command = [sys.executable, str(DRIVER), *map(str, (N_NODES, NODE["cpu"], NODE["disk"]))]
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        processes.prefer(process.pid)
        try:
            output, errors = process.communicate(text, TIMEOUT_S)
        except subprocess.TimeoutExpired:
            output, errors = "", f"not done after {TIMEOUT_S} s"
        finally:
            processes.end(f"RAY_TMPDIR={folder}")
            process.wait()
        if process.returncode:
            raise RuntimeError(f"Ray's driver ended with {process.returncode}:\n{errors[-3000:]}")
        return output
