"""Batch jobs of Slurm's, with stand-ins for its commands; tests/e2e/test_slurm.py has real ones."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sim.base.errors import InputError
from sweep.execution.on_slurm import batch_job

LAUNCHER: dict[str, Any] = {
    **dict.fromkeys(("partition", "account", "qos", "time", "cpus_per_node", "workers")),
    "nodes": 2,
    "options": [],
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put programs called sbatch, squeue and scontrol on PATH; return their folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(batch_job, "POLL_S", 0.01)
    program(folder, "sbatch", "echo '7;main'")
    program(folder, "squeue", "echo 'RUNNING|None'")
    program(folder, "scontrol", "echo JobId=7 JobState=TIMEOUT Reason=TimeLimit")
    return folder


def program(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_job_has_its_script_and_its_words(site: Path, tmp_path: Path) -> None:
    launcher = LAUNCHER | {"partition": "gpu", "time": "4:00:00", "options": ["--mem=64G"]}
    words = ["policy=fifo", "trace.path=s3://key:secret@host/log"]
    job = batch_job.find_or_submit(launcher, words, tmp_path / "100%")
    assert job.number == "7"
    assert batch_job.read(job.stem)["words"] == words
    assert stat.S_IMODE(job.stem.with_suffix(".json").stat().st_mode) == 0o600
    script = job.stem.with_suffix(".sh").read_text()
    assert "secret" not in script
    for option in ("--nodes=2", "--exclusive", "--partition=gpu", "--time=4:00:00", "--mem=64G"):
        assert f"#SBATCH {option}\n" in script
    assert "100%%" in script  # Slurm would replace what follows a single one
    part = batch_job.find_or_submit(LAUNCHER | {"cpus_per_node": 8}, ["policy=las"], tmp_path)
    assert "#SBATCH --cpus-per-task=8\n" in part.stem.with_suffix(".sh").read_text()


def test_the_same_words_find_the_job_that_has_not_ended(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = batch_job.find_or_submit(LAUNCHER, ["policy=fifo"], tmp_path)
    program(site, "sbatch", "echo 8")
    assert batch_job.find_or_submit(LAUNCHER, ["policy=fifo"], tmp_path) == first
    assert "job 7 of the same sweep has not ended" in capsys.readouterr().err
    assert batch_job.find_or_submit(LAUNCHER, ["policy=las"], tmp_path).number == "8"
    first.stem.with_suffix(".exit").write_text("0\n")
    assert batch_job.find_or_submit(LAUNCHER, ["policy=fifo"], tmp_path).number == "8"


def test_it_shows_what_the_job_says_until_it_ends(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = batch_job.find_or_submit(LAUNCHER, ["policy=fifo"], tmp_path)
    state = tmp_path / "state"
    script = f"""
    echo x >> {state}
    case $(wc -l < {state}) in
        1) echo 'PENDING|Resources' ;;
        2) echo '1 of 2 cells done' >> {job.stem}.err; echo 'RUNNING|None' ;;
        3) echo '2 of 2 cells done' >> {job.stem}.err; echo 1 > {job.stem}.exit ;;
    esac"""
    program(site, "squeue", script)
    capsys.readouterr()
    assert batch_job.follow(job) == 1
    assert capsys.readouterr().err.splitlines() == [
        "job 7 waits in Slurm's queue (Resources)", "1 of 2 cells done", "2 of 2 cells done",
    ]  # fmt: skip


def test_a_job_that_slurm_ends_is_an_error_with_its_state(site: Path, tmp_path: Path) -> None:
    job = batch_job.find_or_submit(LAUNCHER, ["policy=fifo"], tmp_path)
    program(site, "squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    with pytest.raises(InputError, match=r"job 7 ended before the sweep did \(TIMEOUT\)"):
        batch_job.follow(job)


def test_a_controller_that_does_not_answer_is_waited_for(site: Path, tmp_path: Path) -> None:
    job = batch_job.find_or_submit(LAUNCHER, ["policy=fifo"], tmp_path)
    times = tmp_path / "times"
    script = f"""
    echo x >> {times}
    [ $(wc -l < {times}) -lt 3 ] || echo 0 > {job.stem}.exit
    echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"""
    program(site, "squeue", script)
    assert batch_job.follow(job) == 0


def test_what_is_missing_or_refused_is_an_error(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(site, "sbatch", "echo 'sbatch: error: invalid partition: nowhere' >&2; exit 1")
    with pytest.raises(InputError, match=r"sbatch refuses the job: .*invalid partition"):
        batch_job.find_or_submit(LAUNCHER, ["policy=fifo"], tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="needs Slurm's sbatch"):
        batch_job.find_or_submit(LAUNCHER, ["policy=fifo"], tmp_path)
