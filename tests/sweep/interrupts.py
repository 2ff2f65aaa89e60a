"""A sweep in a process of its own that is interrupted at a moment that no clock decides.

Moments are counted by what Python tells audit hooks: imports, files that are opened or renamed,
processes and connections that are made. The nth is the same on any machine, or nearly.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.conftest import hear_interrupts
from tests.sweep.small import write_workload

ROOT = Path(__file__).resolve().parents[2]
POLICIES, SEEDS = 2, 3
N_CELLS = POLICIES * SEEDS

_CHILD = """
import os, runpy, signal, sys
moments, count, module, *words = sys.argv[1:]
moments = {int(moment) for moment in moments.split(",") if moment}
n = 0

def hook(event, args):
    global n
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler or n < 0:
        return  # not begun
    n += 1
    if n in moments:
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(hook)
sys.argv = [module, *words]
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
finally:
    n, total = -1, n
    if count:
        open(count, "w").write(str(total))
"""

_MEASURE = """
import pyarrow as pa


def evaluate(run, workload, cluster, policy, seed):
    finish_s = [float(seed + at + len(policy.name)) for at in range(workload.n_jobs)]
    failed = [False] * len(finish_s)
    table = {"submit_s": [0.0] * len(finish_s), "finish_s": finish_s, "failed": failed}
    return {"jct_mean_s": sum(finish_s) / len(finish_s)}, pa.table(table)
"""


@dataclass(frozen=True)
class Ended:
    """End of a command: exit code and output."""

    code: int
    out: str
    err: str

    def interrupts(self) -> list[str]:
        """Lines that say that it was interrupted."""
        return [line for line in self.err.splitlines() if line.startswith("interrupted")]


def own_evaluator(folder: Path) -> Path:
    """Write a small trace, and an evaluator that needs no kernel to be compiled."""
    write_workload(folder / "trace")
    (folder / "mine" / "evaluator").mkdir(parents=True)
    (folder / "mine" / "evaluator" / "sums.yaml").write_text("name: sums\nmodule: sums\n")
    (folder / "mine" / "sums.py").write_text(_MEASURE)
    return folder


def words(folder: Path, results: str, *more: str) -> list[str]:
    """Give the words of a sweep of six cells."""
    command = ["policy=fifo,sjf", "seed=range(0,3)", "baseline=fifo", "evaluator=sums"]
    where = ["trace=parquet", f"trace.path={folder / 'trace'}", f"--config-dir={folder / 'mine'}"]
    return [*command, *where, f"paths.results={folder / results}", *(more or ["launcher=inline"])]


def run(
    words: Sequence[str], moments: Sequence[int] = (), count: Path | None = None,
    module: str = "sweep",
) -> Ended:  # fmt: skip
    """Run a command, with SIGINT at some moments; write down how many there are."""
    child = [sys.executable, "-c", _CHILD, ",".join(map(str, moments)), str(count or "")]
    done = subprocess.run(
        [*child, module, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=hear_interrupts,
        start_new_session=True,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def check(ended: Ended) -> None:
    """Hold an interrupted command to one line and exit code 130, or to none and its own end."""
    shown = (ended.code, ended.out, ended.err)
    assert "Traceback" not in ended.err + ended.out, shown
    assert "Exception ignored" not in ended.err, shown
    if ended.code != 0:
        assert ended.code == 130, shown
        assert len(ended.interrupts()) == 1, shown
        assert ended.err.splitlines()[-1] == ended.interrupts()[0], shown
    else:
        assert ended.out.splitlines()[-1].startswith("/"), shown  # its folder: it was over


def logged(results: Path) -> dict[str, list[str]]:
    """Statuses of the runs in a tracking database, by their kind; empty if there is none yet."""
    moments: dict[str, list[str]] = {}
    path = results / "mlflow.db"
    if not path.is_file():
        return moments
    query = (
        "SELECT tags.value, runs.status FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid "
        "WHERE tags.key = 'kind' AND runs.lifecycle_stage = 'active'"
    )
    tables = "SELECT count(*) FROM sqlite_master WHERE name IN ('runs', 'tags')"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        if connection.execute(tables).fetchone() == (2,):  # else it was being made
            for kind, status in connection.execute(query):
                moments.setdefault(kind, []).append(status)
    return moments
