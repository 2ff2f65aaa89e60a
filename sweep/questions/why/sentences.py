"""Two sentences: whose loss it is, and behind whom it waited."""

from __future__ import annotations

from sweep.questions.why.explanation import N_LOOKED_AT, Explanation, Focus
from sweep.questions.why.fronts import BEFORE, EARLIER, LATER, OWN
from sweep.questions.why.splits import (
    AGAIN,
    BLOCKED,
    CAP,
    CLOSED,
    DEVICE_PARTS,
    DOMAIN,
    GANG_SLOTS,
    LAG,
    LIMIT,
    ORDER,
    PIECES,
    PILOTS,
    QUOTA,
    RESERVED,
    RUNNING,
    SHARE,
    UNRELEASED,
)

SHORT = {
    AGAIN: "run again",
    UNRELEASED: "release",
    LAG: "lags",
    LIMIT: "run limit",
    SHARE: "queue's share",
    QUOTA: "a quota",
    PIECES: "one piece",
    DOMAIN: "one domain",
    CLOSED: "closed nodes",
    CAP: "a cap",
    BLOCKED: "the first",
    RESERVED: "kept room",
    ORDER: "a turn",
    GANG_SLOTS: "not told",
    DEVICE_PARTS: "not told",
}
"""Reasons in a word or two, for a narrow column."""
WORDS = {
    RUNNING: "running",
    AGAIN: "attempts that had to run again",
    UNRELEASED: "a begin time or other jobs",
    LAG: "lags of stages and launches",
    PILOTS: "pilots",
    LIMIT: "the policy's limit on tasks at once",
    SHARE: "the queue's share",
    QUOTA: "the quota of the queue",
    PIECES: "room in one piece",
    DOMAIN: "room in one domain of machines",
    CLOSED: "machines out of service or reserved",
    CAP: "a cap of the cluster",
    BLOCKED: "the first in strict order, while there was room",
    RESERVED: "room that was kept for jobs in front",
    ORDER: "a turn, while there was room",
    GANG_SLOTS: "what gangs hold, which the run does not tell",
    DEVICE_PARTS: "parts of devices, of which the run does not tell",
}
"""Reasons in words after "for"."""
FRONT_WORDS = {
    OWN: "were their own other tasks",
    BEFORE: "were jobs that ran when they came",
    EARLIER: "were jobs that had come before",
    LATER: "were jobs that came later",
}
SLOT = "slot"
"""Resource of a pool."""
N_NAMED = 3
"""Jobs in front that a sentence names."""


def reason_words(reason: str, n: int = 1) -> str:
    """Return what a job spends time on, in words after "for"; `n` tasks of it start at once."""
    short = reason.removeprefix("no ")
    if n > 1 and reason in (BLOCKED, ORDER, DOMAIN):
        return f"{WORDS[reason]} for {n:,} tasks at once"
    if n > 1 and (short != reason or reason == PIECES):
        room = {SLOT: "room", PIECES: "room in one piece"}.get(short, short)
        return f"{room} for {n:,} tasks at once"
    return WORDS.get(reason, "a slot" if short == SLOT else short)


def summary(why: Explanation) -> tuple[str, str]:
    """Return the two sentences."""
    first, second = why.names
    if not why.lost_s.any():
        same = f"All {len(why.jobs):,} jobs take as long under {first} as under {second}."
        return same, "There is nothing to explain."
    focus = why.focus(is_loss=why.is_loss)
    first_sentence = f"{_counts(why)}; {group_clause(focus)}."
    return first_sentence, reasons(why, focus)


N_JOBS = 3
"""Jobs that a short text names."""


def lines(why: Explanation) -> list[str]:
    """Return the two sentences, and one for each of the jobs that lost most."""
    return [*summary(why), *(_job_line(why, position) for position in why.losers[:N_JOBS])]


def _job_line(why: Explanation, position: int) -> str:
    """Say how much longer a job took, what for, and behind whom."""
    first, second = why.names
    both = why.splits(position)
    mine, other = (split.seconds for split in both)
    change = {
        reason: mine.get(reason, 0.0) - other.get(reason, 0.0) for reason in {**mine, **other}
    }
    reason, longer_s = max(change.items(), key=lambda item: item[1])
    behind: dict[int, float] = {}
    for (job, how), front_s in both[0].behind.items():
        if how != OWN:
            behind[job] = behind.get(job, 0.0) + front_s
    front = sorted(behind, key=lambda job: (-behind[job], job))[:N_NAMED]
    names = _listed([job_name(why, job) for job in front]) if front else ""
    after = f", behind {names}" if names else ""
    return (
        f"{job_name(why, int(why.jobs[position]))} took {seconds(float(why.lost_s[position]))} "
        f"longer under {first} than under {second}: {seconds(longer_s)} more for "
        f"{reason_words(reason, at_once(why, int(why.jobs[position])))}{after}."
    )


def _counts(why: Explanation) -> str:
    """Say which mean is longer, and how many jobs lost and won."""
    first, second = why.names
    lost, won = why.lost_s[why.lost_s > 0], -why.lost_s[why.lost_s < 0]
    means = [seconds(float(jct.mean())) for jct in why.jct_s]
    return (
        f"Mean JCT {means[0]} under {first}, {means[1]} under {second}: "
        f"{len(lost):,} of {len(why.jobs):,} jobs lost {seconds(float(lost.sum()))} in all and "
        f"{len(won):,} won {seconds(float(won.sum()))}"
    )


def group_clause(focus: Focus) -> str:
    """Say which jobs the loss, or the gain, mainly is."""
    kind = "loss" if focus.is_loss else "gain"
    if focus.group is None:
        return f"the {kind} is spread: no natural group of at most half of the jobs stands out"
    n = focus.group.n_jobs
    jobs = f"{n:,} job{'s' * (n != 1)}"
    return f"{percent(focus.group.share)} of the {kind} is {jobs} {focus.group.words}"


def reasons(why: Explanation, focus: Focus) -> str:
    """Say how much longer those took, by what, and behind whom they waited."""
    slow, fast = why.names if focus.is_loss else why.names[::-1]
    n = len(focus.looked_at)
    total = sum(focus.longer.values())
    subject, per_job = _looked_at(focus), " each" * (n > 1)
    if focus.group is not None and n == focus.group.n_jobs:
        subject = "They" if n > 1 else "It"
    reason, largest_s = max(focus.longer.items(), key=lambda item: item[1])
    verb = "took" if reason in (RUNNING, AGAIN) else "waited"
    share = percent(min(largest_s / total, 1.0))
    return (
        f"{subject} {verb} {seconds(total / n)} longer{per_job} under {slow} than under {fast}, "
        f"{share} of it for {reason_words(reason)}{_in_front(why, focus)}."
    )


def _looked_at(focus: Focus) -> str:
    n, kind = len(focus.looked_at), "lost" if focus.is_loss else "won"
    jobs = f"{n} of them" if n > 1 else "one of them"
    if focus.group is None:
        jobs = f"{n} jobs"
    superlative = " most" * (n == N_LOOKED_AT)
    return f"The {jobs} that {kind}{superlative} ({percent(focus.share)} of it)"


def _in_front(why: Explanation, focus: Focus) -> str:
    """Say how the jobs in front came to be there, and name some."""
    total = sum(focus.behind.values())
    if not total:
        return ""
    by_kind: dict[str, float] = {}
    for (_, kind), front_s in focus.behind.items():
        by_kind[kind] = by_kind.get(kind, 0.0) + front_s
    kind, largest_s = max(by_kind.items(), key=lambda item: item[1])
    words = FRONT_WORDS[kind]
    if len(focus.looked_at) == 1:
        words = words.replace("their", "its").replace("they", "it")
    pronoun = "them" if len(focus.looked_at) > 1 else "it"
    text = f"; {percent(largest_s / total)} of what stood before {pronoun} there {words}"
    if kind == OWN:
        return text
    names = [f"{job_name(why, job)} ({percent(share)})" for job, share in focus.front[:N_NAMED]]
    return f"{text}; first of all {_listed(names)}"


def at_once(why: Explanation, job: int) -> int:
    """Return how many tasks of a job start at once."""
    return max(1, int(why.splitters[0].attempts.columns.job_min_tasks[job]))


def job_name(why: Explanation, job: int) -> str:
    """Return the id of a job."""
    return str(why.splitters[0].attempts.run.workload.jobs["job_id"][job].as_py())


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def seconds(value: float) -> str:
    """Write a number of seconds."""
    return f"{value:,.0f} s" if abs(value) >= 1000 else f"{value:.3g} s"


def percent(share: float) -> str:
    """Write a share."""
    return f"{100 * share:.{0 if share >= 0.1 or share < 0.0005 else 1}f} %"
