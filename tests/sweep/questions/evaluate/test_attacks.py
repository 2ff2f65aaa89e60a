"""Candidates that cheat, spy and lie: none has a better score, or gets at what it may not.

A candidate of `CONTAINED` says BROKE if its attack succeeds, and else is scored as what it is:
first come, first served. A candidate of `REFUSED` has no score, and the error says why.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.check.worlds import SLOTS, crowd
from sim.workload.workload import Workload
from sweep.questions.evaluate import seal
from sweep.questions.evaluate.evaluator import Evaluator
from tests.sweep.questions.evaluate.candidates import write

BUDGET_S = 0.5
SECRET = "attacks-must-not-see-this"


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOP_SECRET", SECRET)
        folder = tmp_path_factory.mktemp("study")
        judge = Evaluator(
            {"crowd": (crowd(0), SLOTS)},
            train=[0],
            test=[1],
            budget_s=BUDGET_S,
            memory_mb=64,
            study=folder / "study.jsonl",
            reasons=False,
        )
        judge.warm()
        yield judge
        judge.close()


def tries(lines: str) -> str:
    """Lines that say BROKE unless they raise."""
    body = "\n".join(f"    {line}" for line in lines.strip("\n").splitlines())
    return f"try:\n{body}\nexcept Exception:\n    pass\nelse:\n    raise SystemExit('BROKE')"


C_OPEN = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(257 if {x86} else 56, -100, FILE.encode(), 0) < 0:
    raise OSError
""".replace("{x86}", str(os.uname().machine == "x86_64"))
C_SOCKET = """
import ctypes
if ctypes.CDLL(None).socket(2, 1, 0) < 0:
    raise OSError
"""
CONTAINED = {
    "truth in the columns": tries(
        "[v for k, v in vars(world.columns).items() if 'duration' in k][0]"
    ),
    "truth through the class": tries("type(world.columns).job_work.__get__(world.columns)"),
    "truth in the tables": tries(
        "next(t for t in vars(world.columns).values() if hasattr(t, 'jobs')).jobs['requested_s']"
    ),
    "the study": tries("open(FILE)"),
    "the study by the system": tries("import os\nos.open(FILE, os.O_RDONLY)"),
    "the study by C": tries(C_OPEN),
    "a new file": tries("open('/tmp/exfiltrated', 'w')"),
    "a folder's names": tries("import os\nos.listdir('/')"),
    "another candidate": tries("import mine"),
    "a secret of the environment": tries(f"import os\nassert {SECRET!r} in os.environ.values()"),
    "a socket": tries("import socket\nsocket.socket()"),
    "a socket by C": tries(C_SOCKET),
    "a name's address": tries("import socket\nsocket.getaddrinfo('example.org', 80)"),
    "a fork": tries("import os\nif os.fork() == 0: os._exit(0)"),
    "a fork by C": tries("import ctypes\nif ctypes.CDLL(None).fork() < 0: raise OSError"),
    "a command": tries("import subprocess\nsubprocess.run(['true'], check=True)"),
    "the evaluator's end": tries("import os\nos.kill(EVALUATOR, 9)"),
    "the evaluator's end by C": tries(
        "import ctypes\nif ctypes.CDLL(None).kill(EVALUATOR, 9) < 0: raise OSError"
    ),
    "the evaluator's memory": tries("open(f'/proc/{EVALUATOR}/mem', 'rb').seek(0)"),
    "a debugger": tries(
        "import ctypes\nif ctypes.CDLL(None).ptrace(16, EVALUATOR, 0, 0) < 0: raise OSError"
    ),
    "all memory": tries("bytearray(10**10)"),
    "memory of an earlier run": tries("import numpy\nassert hasattr(numpy, 'seen')\n").replace(
        "try:", "import numpy\ntry:"
    )
    + "\nnumpy.seen = True",
    "words on standard output": "import sys\nprint('score: 9')\nsys.__stdout__.write('x' * 10**6)",
    "better metrics": (
        "import sim.metrics, sim.result, sweep.questions.evaluate.candidate as own\n"
        "sim.metrics.compute = lambda *_: {'jct_mean_s': 1e-9}\n"
        "sim.result.Result.metrics = {'jct_mean_s': 1e-9}\n"
        "own.Batch = lambda *a: None"
    ),
    "a changed workload": tries("world.columns.job_submit[:] = 0"),
    "a changed counter": tries("world.view['left'][:] = 0"),
}


@pytest.mark.parametrize("attack", CONTAINED, ids=[name.replace(" ", "_") for name in CONTAINED])
def test_attack_is_contained(evaluator: Evaluator, tmp_path: Path, attack: str) -> None:
    head = f"FILE = {str(evaluator.study)!r}\nEVALUATOR = {os.getpid()}"
    evaluation = evaluator.evaluate(write(tmp_path, head=head, prepare=CONTAINED[attack]))
    assert evaluation.errors == ()
    assert evaluation.score == 1.0


REFUSED = {
    "reads the truth": ("plan.set_jobs(key=world.columns.job_work)", "Knows(durations='true')"),
    "reads a deadline": ("world.columns.job_deadline", "Knows(deadlines='declared')"),
    "loops for ever": ("while True: pass", f"more than budget_s={BUDGET_S:g}"),
    "sleeps": ("import time\ntime.sleep(60)", f"more than budget_s={BUDGET_S:g}"),
    "fills memory": ("kept = []\nwhile True: kept.append(bytearray(10**7))", "MemoryError"),
    "leaves": ("import sys\nsys.exit(0)", "SystemExit: 0"),
    "leaves at once": ("import os\nos._exit(0)", "ended with exit code 0"),
    "crashes": ("import ctypes\nctypes.string_at(0)", "ended with signal 11"),
    "raises": ("raise ValueError('no idea')", "ValueError: no idea (raise ValueError('no idea'))"),
    "writes rubbish": (
        "import os\nfor n in range(3, 64):\n    try: os.write(n, b'rubbish' * 999)\n"
        "    except OSError: pass",
        "writes to the pipe",
    ),
    "announces a huge answer": (
        "import os\nfor n in range(3, 64):\n    try: os.write(n, bytes([255] * 7 + [0]) * 9)\n"
        "    except OSError: pass",
        "writes to the pipe",
    ),
    "answers with other things": (
        "import sweep.questions.evaluate.candidate as own\nsend = own._send\n"
        "own._send = lambda box, content: send(box, {'plan': [1, {'jobs': None}]})",
        "malformed",
    ),
    "names a queue that is none": ("plan.jobs['queue'][:] = 10**6", "'queue' holds 1000000"),
    "sends no number": ("plan.jobs['key'][:] = np.nan", "holds a NaN"),
    "orders no permutation": (
        "plan.task_order = np.full(plan.n_tasks, 10**6, np.int32)",
        "permutation",
    ),
    "learns of groups that are none": (
        "from sim.engine.plan import Learning\nplan.set_stages(expected_s=1.0)\n"
        "ones = np.ones(1)\ngroup = np.full((1, len(plan.stages['key'])), 10**6, np.int32)\n"
        "plan.learning = Learning(group, ones, ones, ones, np.ones(1, int), 1.0, 1.0, 1.0)",
        "learning needs groups",
    ),
    "starves the large": (
        "large = np.diff(world.columns.job_stage0) > 2\n"
        "plan.set_jobs(run_limit=np.where(large, 0, 10**6))",
        "jobs",
    ),
    "cancels the large": (
        "n = np.diff(world.columns.job_stage0)\nplan.preemption = Preemption()\n"
        "plan.set_jobs(key=n, preempt_level=-n, preempts_below=-n + 0.5, when_preempted=1)",
        "not done that are done under fifo",
    ),
    "looks ahead": (
        "import hashlib\n"
        "plan.set_jobs(key=np.random.default_rng(\n"
        "    int(world.columns.stage_demand_f.sum() * 1000)).random(len(plan.jobs['key'])))",
        "looks ahead, or does not repeat",
    ),
    "does not repeat": (
        "import time\nplan.set_jobs(key=np.random.default_rng(time.time_ns()).random("
        "len(plan.jobs['key'])))",
        "looks ahead, or does not repeat",
    ),
    "is no Python": ("plan.set_jobs(key=)", "SyntaxError"),
}


@pytest.mark.parametrize("attack", REFUSED, ids=[name.replace(" ", "_") for name in REFUSED])
def test_attack_is_refused(evaluator: Evaluator, tmp_path: Path, attack: str) -> None:
    lines, why = REFUSED[attack]
    begin = time.monotonic()
    evaluation = evaluator.evaluate(write(tmp_path, prepare=lines))
    assert time.monotonic() - begin < BUDGET_S + 5
    (error,) = evaluation.errors
    assert why in error
    assert error.startswith(f"{tmp_path / 'mine.py'}:")
    assert evaluation.score != evaluation.score  # NaN


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("knows = Knows(durations='true')", "an oracle, which nobody can run"),
        ("knows = 'everything'", "knows must be a policies.Knows"),
        ("events = Event.TIMER\n", ""),
    ],
)
def test_what_it_says_of_itself_is_checked(
    evaluator: Evaluator, tmp_path: Path, body: str, why: str
) -> None:
    evaluation = evaluator.evaluate(write(tmp_path, body=body))
    assert [why in error for error in evaluation.errors] == [True] * bool(why)


def test_timer_without_end_is_late(evaluator: Evaluator, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        body="events = Event.TIMER",
        prepare="plan.timer_s = 1e-6",
        react="plan.timer_s = batch.now + 1e-9",
    )
    (error,) = evaluator.evaluate(file).errors
    assert "budget_s" in error


def test_oracle_is_scored_if_that_is_wanted(evaluator: Evaluator, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        body="knows = Knows(durations='true')",
        prepare="plan.set_jobs(key=world.columns.job_work)",
    )
    judge = dataclasses.replace(evaluator, oracle=True)
    assert judge.evaluate(file).score > 1.0


def test_words_do_not_tell_the_test_seeds(evaluator: Evaluator, tmp_path: Path) -> None:
    leak = "raise ValueError(f'{world.columns.job_submit.sum()}')"
    file = write(tmp_path, prepare=leak)
    assert f"{crowd(0).columns.job_submit.sum()}" in evaluator.evaluate(file).errors[0]
    (error,) = evaluator.evaluate(file, final=True).errors
    assert "it fails on the test seeds" in error
    assert "ValueError:" not in error


def test_hook_alone_holds_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for event in ("open", "socket.connect", "os.fork", "subprocess.Popen"):
        with pytest.raises(PermissionError, match=event):
            seal._refuse(event, ("x",))
    seal._refuse("import", ("math",))  # no file is opened for what is there


def test_columns_that_nobody_knows_are_not_sent() -> None:
    import pickle

    from policies.knows import Knows
    from policies.views import cut

    workload: Workload = crowd(0)
    data = pickle.dumps(cut(workload.columns, Knows()))
    known = pickle.dumps(cut(workload.columns, Knows(durations="true")))
    duration = workload.columns.task_duration[3].tobytes()
    assert duration in known
    assert duration not in data
