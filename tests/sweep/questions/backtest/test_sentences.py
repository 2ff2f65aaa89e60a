"""Answers of a backtest in words."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import sim
from sweep.questions.backtest.compare import Comparison
from sweep.questions.backtest.likelihood import compare_policies
from sweep.questions.backtest.logged_jobs import LoggedJobs
from sweep.questions.backtest.nearest import Ranking
from sweep.questions.backtest.sentences import log_caveats, nearest_sentence, policy_sentence

NAN = math.nan
COMPARED = Comparison(
    546.2, 538.0, 560.4, -0.0468, 0.1, 0.1, 0.7, 0.9993, 0.96, 1000.0, 980.0, -0.02, 0.043
)


def jobs(n_waited: int = 23) -> LoggedJobs:
    """Return 30 jobs that waited for 573 s in the mean."""
    waits = np.where(np.arange(30) < n_waited, 573.0 * 30 / max(n_waited, 1), 0.0)
    return LoggedJobs(np.arange(30), np.zeros(30), waits, waits + 1, 2.0, 1.0)


def test_sentence_of_a_policy() -> None:
    assert policy_sentence("backfill/slurm", jobs(), COMPARED) == (
        "backfill/slurm: mean wait 546 s [538, 560], recorded 573 (−4.7 %); of the 23 jobs that "
        "waited 70 % are within 10 %; 99.9 % of pairs start in the recorded order"
    )


def test_sentence_of_one_job_and_of_no_error() -> None:
    compared = dataclasses.replace(COMPARED, error=-1e-7)
    text = policy_sentence("fifo", jobs(1), compared)
    assert "recorded 573 (+0.0 %); of the 1 job that waited 70 % is within 10 %" in text


def test_sentence_where_stages_wait_too() -> None:
    text = policy_sentence("fifo", jobs(), COMPARED, with_completion=True)
    assert text.endswith("; mean completion 980 s, recorded 1,000 (−2.0 %), a job's 4.3 % off")


def test_sentence_where_nobody_waited() -> None:
    nothing = Comparison(0.4, 0.4, 0.4, NAN, NAN, 0.0, NAN, NAN, 1.0, NAN, NAN, NAN, NAN)
    text = policy_sentence("fifo", jobs(0), nothing)
    assert text == "fifo: mean wait 0.4 s [0.4, 0.4], recorded 0; no job waited"


def ranking(*p_holm: float) -> Ranking:
    """Rank policies of which the first is the nearest."""
    n = len(p_holm)
    test = compare_policies(np.zeros(5), np.zeros(5))
    return Ranking(0, (0.0,) * n, (0.0,) * n, (test,) * n, p_holm)


@pytest.mark.parametrize(
    ("p_holm", "text"),
    [
        ((NAN,), "nearest: a, the only policy"),
        ((NAN, 0.01), "nearest: a; tests tell it from b"),
        ((NAN, 0.01, 0.04), "nearest: a; tests tell it from b and c"),
        ((NAN, 0.01, 0.06), "nearest: a, but no test tells it from c; told from b"),
        ((NAN, NAN, 0.06), "nearest: a, but no test tells it from b and c"),
    ],
)
def test_sentence_on_the_nearest(p_holm: tuple[float, ...], text: str) -> None:
    labels = ["a", "b", "c"][: len(p_holm)]
    assert nearest_sentence(labels, ranking(*p_holm)) == text
    other = nearest_sentence(labels, ranking(*p_holm), is_in_order=False)
    assert other == f"{text}; none of them can have made this log"


def caveats(**report: Any) -> list[str]:
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}])
    return log_caveats(w.with_meta({"report": report}))


def test_what_forbids_to_trust_a_result_on_a_log() -> None:
    def cpu(left_out: float) -> dict[str, Any]:
        entry = {"log": 100.0, "workload": 100.0 - left_out, "left_out": left_out, "changed": 0.0}
        return {"cpu_s": {**entry, "left_out_by": {"never ended": left_out}}}

    assert caveats() == caveats(account=cpu(4.0)) == []
    both = caveats(account=cpu(10.0), warnings=["licences"])
    assert both == ["10 % of the log's work is left out", "mind the warning on the log"]
    text = nearest_sentence(["a"], ranking(NAN), caveats=both)
    assert text == f"nearest: a, the only policy; {'; '.join(both)}"
