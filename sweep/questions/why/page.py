"""The page of an explanation: one file without scripts."""

from __future__ import annotations

import html as escapes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sim.base import html
from sim.base.text import printable
from sweep.questions.why import groups, sentences, splits
from sweep.questions.why.explanation import Explanation, Focus
from sweep.questions.why.fronts import KINDS, OWN
from sweep.questions.why.rows import JobRow, reasons_of, rows
from sweep.questions.why.scatter import scatter
from sweep.questions.why.sentences import job_name, percent, reason_words, seconds

FOLDER = Path(__file__).parent / "templates"
N_FRONT = 8
"""Jobs in front that a table has."""
FOOTERS = {
    True: "Both cells were run again, and have the sweep’s metrics to the bit.",
    False: "Code or trace changed since the sweep: its cells may have been others than these runs.",
}
"""By whether both runs are those of the sweep."""
N_SHORT = 4
"""Classes of shortages of one resource."""
N_NAMED = 5
"""Jobs in front that are named under the summary."""
LEAST_SHARE = 0.0005
"""Smallest share that is drawn."""
STYLES = {
    splits.RUNNING: "r-run",
    splits.AGAIN: "r-again",
    splits.UNRELEASED: "r-back",
    splits.LAG: "r-lag",
    splits.PILOTS: "r-pilots",
    splits.LIMIT: "r-limit",
    splits.SHARE: "r-share",
    splits.QUOTA: "r-share",
    splits.PIECES: "r-pieces",
    splits.DOMAIN: "r-pieces",
    splits.CLOSED: "r-closed",
    splits.CAP: "r-limit",
    splits.BLOCKED: "r-order",
    splits.RESERVED: "r-order",
    splits.ORDER: "r-order",
    splits.GANG_SLOTS: "r-other",
    splits.DEVICE_PARTS: "r-other",
}
TERMS = {
    splits.RUNNING: "A task of its chain ran.",
    splits.AGAIN: "An attempt of its chain failed, was evicted or preempted, and ran again.",
    splits.UNRELEASED: "A begin time or other jobs kept it back.",
    splits.LAG: "Its stage opened later than its inputs were there, or it was being launched.",
    splits.PILOTS: "As many of its tasks had started as the policy lets start at first.",
    splits.LIMIT: "As many of its tasks ran as the policy lets run at once.",
    splits.SHARE: "The hard share of its queue was in use.",
    splits.QUOTA: "Its queue, or a cohort above, used all of its quota and what it may borrow.",
    "no R": "No machine that it may use had enough of R for a task, or all had for its gang.",
    splits.PIECES: "There was enough of each resource, but not together on a machine.",
    splits.DOMAIN: "There was room, but not in one rack, or other domain that its gang requires.",
    splits.CLOSED: "It would have fit on machines out of service, or reserved for others.",
    splits.CAP: "Its user, account or another group used all that a cap of the cluster lets it.",
    splits.BLOCKED: "There was room, and in strict order it waited for the first, which did not "
    "fit.",
    splits.RESERVED: "There was room, and a reservation or a plan of jobs in front kept it.",
    splits.ORDER: "There was room, and it was not started: others went first in the order.",
    splits.GANG_SLOTS: "The run does not tell: some gangs hold room that is not recorded.",
    splits.DEVICE_PARTS: "The run does not tell: which parts of devices were in use is not "
    "recorded.",
}


def write_text(why: Explanation, place: str, timeline: str | None) -> str:
    """Return the page; `timeline` is the address of the page with both timelines, if any."""
    shown = rows(why, why.losers + why.winners)
    focus = why.focus(is_loss=why.is_loss)
    colours = styles([*reasons_of(shown), *focus.seconds[0], *focus.seconds[1]])
    sides = [
        _side(why, why.losers, colours, timeline, is_loss=True),
        _side(why, why.winners, colours, timeline, is_loss=False),
    ]
    marked = [
        (row.position, "lost" if row.lost_s > 0 else "won", f"#{_id(row)}", _title(row))
        for row in shown
    ]
    first, second = why.names
    template = html.environment(FOLDER).get_template("why.html.j2")
    return template.render(
        css=html.css() + (FOLDER / "why.css").read_text(encoding="utf-8"),
        title=f"Why {first} {'loses' if why.is_loss else 'wins'} against {second}",
        place=place,
        names=why.names,
        summary=sentences.summary(why),
        notes=notes(why, shown),
        scatter=scatter(*why.jct_s, marked),
        overview=_overview(why, focus, colours, timeline),
        sides=sides if why.is_loss else sides[::-1],
        kind="loss" if why.is_loss else "gain",
        groups=_groups(why),
        terms=terms(colours),
        footer=FOOTERS[all(run.is_recorded for run in why.runs)],
    )


def notes(why: Explanation, shown: Sequence[JobRow]) -> list[str]:
    """Return what is left out of the comparison, and how much of the waits has no reason."""
    lines = []
    left_out = why.n_jobs - len(why.jobs)
    if left_out:
        lines.append(
            f"{left_out:,} of {why.n_jobs:,} jobs are not done under both policies: left out."
        )
    waits = sum(split.wait_s for row in shown for split in row.splits)
    every = [split.seconds for row in shown for split in row.splits]
    unknown = sum(seconds.get(name, 0.0) for seconds in every for name in splits.UNTOLD)
    if unknown:
        lines.append(
            f"{percent(unknown / waits)} of the waits of the jobs below has no known reason."
        )
    return lines


def _overview(
    why: Explanation, focus: Focus, colours: Mapping[str, str], timeline: str | None
) -> dict[str, Any] | None:
    """Return the jobs of the summary as one: a bar for each policy, and one of those in front."""
    n = len(focus.looked_at)
    if not n:
        return None
    longest = max(sum(seconds.values()) for seconds in focus.seconds)
    total = sum(focus.behind.values()) or 1.0
    by_kind = {
        kind: sum(front_s for (_, how), front_s in focus.behind.items() if how == kind) / total
        for kind in KINDS
    }
    return {
        "title": f"The {n} jobs of the summary, on average" if n > 1 else "The job of the summary",
        "bars": [
            bar(name, {r: v / n for r, v in seconds.items()}, colours, longest / n)
            for name, seconds in zip(why.names, focus.seconds, strict=True)
        ],
        "front": f"What they waited behind under {why.names[focus.slow]}",
        "kinds": [
            {"style": f"k-{k}", "words": kind, "share": percent(by_kind[kind]),
             "width": f"{100 * by_kind[kind]:.2f}"}
            for k, kind in enumerate(KINDS)
            if by_kind[kind] >= LEAST_SHARE
        ],
        "jobs": [
            {"name": job_name(why, job), "share": percent(share),
             "link": _link(timeline, job_name(why, job))}
            for job, share in focus.front[:N_NAMED]
        ],
        "reasons": [
            {"style": colours[r], "words": _name(r)} for r in _longest_first(focus.seconds)
        ],
    }  # fmt: skip


def _longest_first(seconds: Sequence[Mapping[str, float]]) -> list[str]:
    sums = {r: sum(split.get(r, 0.0) for split in seconds) for r in {**seconds[0], **seconds[1]}}
    return sorted((r for r in sums if sums[r] > 0), key=lambda r: -sums[r])


def _link(timeline: str | None, job: str) -> str | None:
    return None if timeline is None else f"{timeline}#job={quote(job)}"


def _side(
    why: Explanation,
    positions: Sequence[int],
    colours: Mapping[str, str],
    timeline: str | None,
    *,
    is_loss: bool,
) -> dict[str, Any]:
    verb = "lost" if is_loss else "won"
    job_rows = rows(why, positions)
    known = reasons_of(job_rows)
    longest = max(
        (max(why.jct_s[p][row.position] for p in (0, 1)) for row in job_rows), default=1.0
    )
    sentence = sentences.group_clause(why.focus(is_loss=is_loss)) if job_rows else f"no job {verb}"
    n = f"{len(job_rows)} jobs that {verb} most" if len(job_rows) > 1 else f"job that {verb}"
    return {
        "title": f"The {n}" if job_rows else f"No job {verb}",
        "sentence": f"{sentence[0].upper()}{sentence[1:]}.",
        "style": verb,
        "reasons": [{"style": colours[r], "words": _name(r)} for r in known],
        "jobs": [_job(row, colours, float(longest), timeline) for row in job_rows],
    }


def styles(reasons: Sequence[str]) -> Mapping[str, str]:
    """Return the class of each reason: shortages of one resource in turn, of several alike."""
    short = sorted({*reasons} - STYLES.keys())
    single = [reason for reason in short if " and " not in reason]
    styles = {reason: f"r-no{min(k, N_SHORT - 1)}" for k, reason in enumerate(single)}
    return {**STYLES, **dict.fromkeys(short, "r-several"), **styles}


def _name(reason: str) -> str:
    if reason in (splits.RUNNING, splits.AGAIN):
        return reason
    return f"waits for {reason_words(reason)}"


def _job(
    row: JobRow, colours: Mapping[str, str], longest: float, timeline: str | None
) -> dict[str, Any]:
    why = row.why
    return {
        "id": _id(row),
        "name": row.job_id,
        "lost": f"{row.lost_s:+,.0f} s" if abs(row.lost_s) >= 100 else f"{row.lost_s:+.3g} s",
        "facts": _facts(row),
        "bars": [
            bar(why.names[policy], row.splits[policy].seconds, colours, longest)
            for policy in (0, 1)
        ],
        "reason": _reason(row),
        "link": _link(timeline, row.job_id),
        "runs": [_run(row, policy) for policy in (0, 1) if why.jct_s[policy][row.position] > 0],
    }


def _id(row: JobRow) -> str:
    return f"job-{row.job}"


def _title(row: JobRow) -> str:
    return escapes.escape(printable(f"{row.job_id}: {seconds(row.lost_s)}"))


def _facts(row: JobRow) -> list[str]:
    facts, known = row.facts(), row.why.facts
    named = {"user": known.user, "queue": known.queue}
    words = [f"{name} {facts[name]}" for name, all_of in named.items() if len({*all_of}) > 1]
    words.append(f"{facts['n_tasks']:,} task{'s' * (facts['n_tasks'] != 1)}")
    words.append(f"{seconds(facts['work_s'])} of work")
    if "estimate_s" in facts:
        words.append(f"estimated as {seconds(facts['estimate_s'])}")
    if "requested_s" in facts:
        words.append(f"asked for {seconds(facts['requested_s'])}")
    return [*words, f"submitted at {seconds(facts['submit_s'])}"]


def bar(
    name: str, split: Mapping[str, float], colours: Mapping[str, str], longest: float
) -> dict[str, Any]:
    """Return the bar of a completion time: waits first, the longest of them at the left."""
    parts = [(reason, s) for reason, s in split.items() if s > 0]
    parts.sort(key=lambda part: (part[0] in (splits.RUNNING, splits.AGAIN), -part[1]))
    total = sum(split.values())
    return {
        "name": name,
        "total": seconds(total),
        "words": f"{seconds(total)}: " + ", ".join(f"{_name(r)} {seconds(s)}" for r, s in parts),
        "parts": [
            {
                "style": colours[reason],
                "width": f"{100 * s / longest:.2f}",
                "words": f"{_name(reason)}: {seconds(s)}",
            }
            for reason, s in parts
        ],
    }


def _reason(row: JobRow) -> str:
    """Say what the job took longer for, and how much of what stood before it overtook it."""
    reason, longer_s = row.longer
    slow = row.why.names[row.slow]
    verb = "took" if reason in (splits.RUNNING, splits.AGAIN) else "waited"
    words = reason_words(reason, sentences.at_once(row.why, row.job))
    text = f"Under {slow} it {verb} {seconds(longer_s)} longer for {words}"
    share = row.overtaken_share
    if share >= 0.005:
        text += f"; {percent(share)} of what stood before it there came later than it did"
    return text + "."


def _run(row: JobRow, policy: int) -> dict[str, Any]:
    split, why = row.splits[policy], row.why
    total = sum(split.behind.values())
    names = why.splitters[policy].attempts.run.workload.stages["name"]
    waits = sorted(split.stages.items(), key=lambda item: -item[1])[:N_FRONT]
    texts = [f"{names[stage].as_py() or f'stage {stage}'} {seconds(s)}" for stage, s in waits]
    return {
        "title": f"Under {why.names[policy]}",
        "rows": [
            {
                "name": "itself" if how == OWN else name,
                "how": how,
                "seconds": seconds(front_s),
                "share": percent(front_s / total),
            }
            for name, how, front_s in row.in_front(policy, N_FRONT)
        ],
        "stages": f"Waits along its chain: {', '.join(texts)}."
        if texts
        else "It waited for nothing.",
    }


def _groups(why: Explanation) -> list[dict[str, str]]:
    change_s = (why.lost_s if why.is_loss else -why.lost_s).clip(min=0)
    return [
        {
            "words": group.words,
            "n": f"{group.n_jobs:,}",
            "part": percent(group.n_jobs / len(why.jobs)),
            "share": percent(group.share),
        }
        for group in groups.concentrated_by_fact(why.facts, change_s)
    ]


def terms(colours: Mapping[str, str]) -> list[dict[str, str]]:
    """Return each reason, the rule by which it holds, and its colour."""
    return [
        {"name": name, "words": words, "style": colours.get(name, "r-no0")}
        for name, words in TERMS.items()
    ]
