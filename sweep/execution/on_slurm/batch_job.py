"""Submission of a sweep as a batch job of Slurm's; its progress is shown until it ends."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.base import files, interrupt
from sim.base.errors import InputError
from sweep.execution.notes import note

FOLDER = "slurm"
"""Folder of the jobs' files in the results folder."""
POLL_S = 1.0
GRACE_S = 60
"""Time before a job's limit at which it is told to end, s: it stores the cells that are done."""
_QUEUED, _RUNNING = "queued", "running"
_STATES = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED"), _QUEUED),
    **dict.fromkeys(("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING"), _RUNNING),
}
"""States of jobs that have not ended, by what they mean here."""


@dataclass(frozen=True)
class BatchJob:
    """A job that was submitted, and its files.

    ``<stem>.json`` is what it runs, ``.sh`` its script, ``.job`` its number, ``.err`` what it says,
    ``.ray`` what Ray says, and ``.exit`` its exit code.
    """

    number: str  # Slurm's
    stem: Path


def find_or_submit(launcher: Mapping[str, Any], words: Sequence[str], results: Path) -> BatchJob:
    """Submit a sweep, unless a job of the same words has not ended.

    Parameters
    ----------
    launcher : mapping
        ``launcher=slurm`` and its options.
    words : sequence of str
        The command line of the sweep in the allocation, without its launcher.
    results : Path
        Folder of the results, which the nodes see, too.

    Raises
    ------
    InputError
        If Slurm's commands are missing, or sbatch refuses the job.
    """
    if shutil.which("sbatch") is None or shutil.which("squeue") is None:
        raise InputError(
            "launcher=slurm needs Slurm's sbatch and squeue, which are not on PATH here: run it on "
            "a login node, or give launcher=local",
            rule="no cluster",
        )
    identity = json.dumps([*words], ensure_ascii=False)
    stem = results / FOLDER / hashlib.sha256(identity.encode()).hexdigest()[:12]
    earlier = _submitted(stem)
    if earlier is not None and _exit_code(stem) is None and _state(earlier.number)[0]:
        note(f"job {earlier.number} of the same sweep has not ended")
        return earlier
    stem.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".job", ".exit", ".err", ".ray"):
        stem.with_suffix(suffix).unlink(missing_ok=True)
    script = _script(launcher, stem)
    files.write_text(stem.with_suffix(".sh"), script)
    _write(stem, {"words": [*words], "workers": launcher["workers"]})
    done = subprocess.run(
        ["sbatch", "--parsable", stem.with_suffix(".sh")], capture_output=True, text=True
    )
    if done.returncode != 0:
        reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise InputError(f"sbatch refuses the job: {reason}", rule="no cluster")
    number = done.stdout.strip().split(";")[0]
    files.write_text(stem.with_suffix(".job"), number)
    note(f"job {number} is submitted; its files are {stem}.*")
    return BatchJob(number, stem)


def follow(job: BatchJob) -> int:
    """Show what a job prints until it ends; return its exit code.

    An interrupt, or a terminal that is closed, leaves the job as it is.

    Raises
    ------
    InputError
        If Slurm ended the job before the sweep did.
    """
    interrupt.set_line(
        f"job {job.number} goes on: the same command shows it again, `python -m sweep status` what "
        f"is done; `scancel {job.number}` ends it"
    )
    shown, shown_bytes = "", 0
    while True:
        phase, reason = _state(job.number)
        if phase == _QUEUED and reason not in (shown, "None"):
            note(f"job {job.number} waits in Slurm's queue ({reason})")
            shown = reason
        shown_bytes = _show(job.stem.with_suffix(".err"), shown_bytes)
        code = _exit_code(job.stem)
        if code is not None:
            _show(job.stem.with_suffix(".err"), shown_bytes)
            return code
        if not phase:
            break
        time.sleep(POLL_S)
    time.sleep(POLL_S)  # files come later on some file systems
    _show(job.stem.with_suffix(".err"), shown_bytes)
    code = _exit_code(job.stem)
    if code is None:
        raise InputError(
            f"job {job.number} ended before the sweep did{_end(job.number)}: cells that are done "
            "are stored, and the same command goes on from there; launcher.time=... sets the limit "
            f"of run time, and {job.stem}.err has what it printed",
            rule="job ended",
        )
    return code


def _script(launcher: Mapping[str, Any], stem: Path) -> str:
    """Write the batch script; options of sbatch in the order of the launcher's."""
    cpus = launcher["cpus_per_node"]
    options = [
        "--job-name=sweep",
        f"--nodes={launcher['nodes']}",
        "--ntasks-per-node=1",
        "--exclusive" if cpus is None else f"--cpus-per-task={cpus}",
        *(
            f"--{key}={launcher[key]}"
            for key in ("partition", "account", "qos", "time")
            if launcher[key] is not None
        ),
        f"--signal=B:TERM@{GRACE_S}",
        "--open-mode=append",
        f"--output={_literal(stem)}.out",
        f"--error={_literal(stem)}.err",
        *map(str, launcher["options"]),
    ]
    module = "sweep.execution.on_slurm.allocation"
    command = shlex.join([sys.executable, "-m", module, str(stem)])
    lines = ["#!/bin/bash", *(f"#SBATCH {shlex.quote(option)}" for option in options)]
    lines += [f"cd {shlex.quote(str(Path.cwd()))}", f"exec {command}", ""]
    return "\n".join(lines)


def _literal(path: Path) -> str:
    """Write a path in which Slurm replaces nothing."""
    return str(path).replace("%", "%%")


def _write(stem: Path, record: Mapping[str, Any]) -> None:
    """Write what a job is to run, for its owner alone: words may hold secrets."""
    path = stem.with_suffix(".json")
    path.touch(mode=0o600)
    path.chmod(0o600)
    with path.open("w", encoding="utf-8") as file:
        json.dump(record, file)


def read(stem: Path) -> dict[str, Any]:
    """Read what a job is to run: ``words`` and ``workers``."""
    record: dict[str, Any] = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    return record


def _submitted(stem: Path) -> BatchJob | None:
    try:
        return BatchJob(stem.with_suffix(".job").read_text(), stem)
    except OSError:
        return None


def _state(number: str) -> tuple[str, str]:
    """Return whether a job is queued or running, and why it waits; empty once it has ended.

    A controller that does not answer counts as running: it may be restarting.
    """
    words = ["squeue", "--noheader", f"--jobs={number}", "--format=%T|%r"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0 and "Invalid job id" not in done.stderr:
        return _RUNNING, ""
    state, _, reason = done.stdout.strip().partition("|")
    return _STATES.get(state, ""), reason


def _end(number: str) -> str:
    """Return how Slurm says that a job ended, such as `` (TIMEOUT)``; empty if it has forgotten."""
    words = ["scontrol", "--oneliner", "show", "job", number]
    done = subprocess.run(words, capture_output=True, text=True)
    fields = dict(word.partition("=")[::2] for word in done.stdout.split())
    return f" ({fields['JobState']})" if fields.get("JobState") else ""


def _show(file: Path, n_shown: int) -> int:
    """Print what a file has beyond the bytes that were shown; return how many it has now."""
    try:
        with file.open("rb") as stream:
            stream.seek(n_shown)
            content = stream.read()
    except OSError:
        return n_shown
    if content:
        sys.stderr.write(content.decode("utf-8", "replace"))
        sys.stderr.flush()
    return n_shown + len(content)


def _exit_code(stem: Path) -> int | None:
    try:
        return int(stem.with_suffix(".exit").read_text())
    except (OSError, ValueError):
        return None
