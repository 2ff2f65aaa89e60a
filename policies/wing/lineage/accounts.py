"""Account of the runs of a log in a time window: what became of their work."""

from __future__ import annotations

from typing import Final

import numpy as np

from policies.wing.lineage.logs import Logs
from policies.wing.lineage.run_times import FILLED
from sim.base.arrays import F8, Mask
from sim.base.reading import Account

MISSING: Final = "failed because an input was missing"
MAX_CENSORED: Final = 0.02
"""Share of jobs that still ran when the log ended above which they are told first."""


def account_of(logs: Logs, inside: Mask, window: tuple[float, float]) -> Account:
    """Return the account of the jobs `inside` a window, and of the runs that are none.

    Work is the resources held × time, ``tokens_s``.
    """
    work = logs.column("requested") * (logs.column("finish_s") - logs.column("start_s"))
    filled = logs.is_unknown()[inside]
    account = Account({"tokens_s": np.where(filled, np.nan, work[inside])})
    account.leave_out(MISSING, logs.has("outcome", "missing_input")[inside])
    ran = ~logs.has("outcome", "missing_input")[inside]
    account.change(FILLED, tokens_s=-float(work[inside][filled & ran].sum()))
    for part in logs.left_out:
        is_near = ~((part.submit_s < window[0]) | (part.submit_s >= window[1]))  # or unknown
        _add(account, part.rule, part.work_s[is_near], by_option=part.by_option)
    account.warnings += _censored(logs, inside)
    return account


def _add(account: Account, rule: str, work: F8, *, by_option: bool) -> None:
    known = ~np.isnan(work)
    n = int(np.count_nonzero(known))
    if n:
        account.add(rule, by_option=by_option, jobs=n, tokens_s=float(work[known].sum()))
    if n < len(work):
        account.add_bad(rule, {}, len(work) - n)


def _censored(logs: Logs, inside: Mask) -> list[str]:
    censored, n = logs.has("run_time", "censored")[inside], int(np.count_nonzero(inside))
    n_censored = int(np.count_nonzero(censored))
    if n_censored <= MAX_CENSORED * n:
        return []
    return [
        f"{n_censored:,} of {n:,} jobs ({100 * n_censored / n:.1f} %) had not ended when the log "
        "did (censored): they run for as long as they were seen"
    ]
