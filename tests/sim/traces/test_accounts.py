"""The account of every reader holds on its samples, and on damaged ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import sim
import sim.traces
from sim.check.account import check_account
from sim.check.broken import BrokenRuleError
from tests.examples import examples
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import TARGETS

WITHOUT_LOG = ("parquet", "bqetl")
"""A workload as it was written; tables that recur, whose run times are drawn: no logs of jobs."""
READERS = [name for name in sim.traces.names() if name not in WITHOUT_LOG]


def variants(name: str) -> list[str]:
    """Return the targets of a reader: as it is by default, and with bad rows skipped."""
    return [target for target in (name, f"{name}, skipping") if target in TARGETS]


@pytest.mark.parametrize("name", READERS)
def test_samples_have_an_account_that_holds(name: str, tmp_path: Path) -> None:
    for target in variants(name):
        for number, sample in enumerate(TARGETS[target].samples):
            folder = tmp_path / f"{target} {number}"
            folder.mkdir()
            workload: Any = TARGETS[target].read(sample, folder)
            account = check_account(workload)
            assert account["jobs"]["workload"] == workload.n_jobs > 0


# pyarrow can't hand a row that is no UTF-8 to its handler, says so, and refuses the file
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_have_one_too_or_are_refused(name: str, tmp_path: Path) -> None:
    target = TARGETS[variants(name)[-1]]

    @settings(max_examples=examples(120), phases=(Phase.generate,), derandomize=True, deadline=None)
    @given(st.randoms(use_true_random=False))
    def damaged(rng: random.Random) -> None:
        content = mutated(rng.choice(target.samples), rng)
        try:
            workload: Any = target.read(content, tmp_path)
        except sim.InputError:
            return
        try:
            check_account(workload)
        except BrokenRuleError as error:
            raise AssertionError(f"on {content!r}") from error

    damaged()
