"""Which jobs are runs of one program, and what they are like: Table 1, with its thresholds."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I1, I4, Mask, offsets
from sim.base.errors import InputError
from sim.lineage.dependencies import DAY_S, Dependencies
from sim.lineage.logs import Logs

VARYING = (
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    r"(?<![a-z0-9])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?![a-z0-9])",
    r"[0-9]{4}[-_./][0-9]{1,2}(?:[-_./][0-9]{1,2})?(?:[t _-][0-9]{1,2}(?:[:.-][0-9]{2}){0,2}z?)?",
    r"[0-9]{6,}(?:[t_-][0-9]{2,6}z?)?",
)
"""What differs from run to run of one program: identifiers, digests, dates, long numbers.

Short numbers stay, as they may tell programs apart (``load_part_2``).
"""
SIMILARITY = 0.8
"""Least Jaccard similarity of the words of two signatures that count as one program's."""
_WORD = re.compile(r"[\w#]+")


@dataclass(frozen=True, eq=False)
class Templates:
    """Programs, in order of their first run."""

    job_template: I4  # template of each job
    name: list[str]  # normalised name of each; numbered where programs of one name differ

    def __len__(self) -> int:
        """Return the number of templates."""
        return len(self.name)


def normalised(texts: list[str], varying: tuple[str, ...] = VARYING) -> list[str]:
    """Return `texts` in lower case with all that is `varying` as ``#``."""
    if not varying:
        return [text.lower() for text in texts]
    pattern = re.compile("|".join(varying))
    return [pattern.sub("#", text.lower()) for text in texts]


def find_templates(
    logs: Logs, *, similarity: float = SIMILARITY, varying: tuple[str, ...] = VARYING
) -> Templates:
    """Group jobs whose normalised names are equal and whose signatures are approximately equal.

    A signature, a set of words, joins the first group whose first signature is similar enough.
    """
    name, names = _recoded(logs, "template_name", varying)
    signature, signatures = _recoded(logs, "signature", ())
    pair = name.astype(np.int64) * max(len(signatures), 1) + signature
    distinct, first, of_job = np.unique(pair, return_index=True, return_inverse=True)
    in_order = np.argsort(first, kind="stable")  # by the first run
    group: dict[int, list[tuple[frozenset[str], int]]] = {}
    known: list[str] = []
    template = np.empty(len(distinct), np.int32)
    for place in in_order.tolist():
        code, sign = divmod(int(distinct[place]), max(len(signatures), 1))
        words = frozenset(_WORD.findall(signatures[sign]))
        leaders = group.setdefault(code, [])
        for leader, number in leaders:
            if _jaccard(words, leader) >= similarity:
                template[place] = number
                break
        else:
            template[place] = len(known)
            leaders.append((words, len(known)))
            tail = f" ({len(leaders)})" if len(leaders) > 1 else ""
            known.append(names[code] + tail)
    return Templates(template[of_job], known)


def _recoded(logs: Logs, column: str, varying: tuple[str, ...]) -> tuple[I4, list[str]]:
    """Return normalised texts as codes and their spellings."""
    given = logs.jobs[column].chunk(0)
    texts = normalised(given.dictionary.to_pylist(), varying)
    spelled = list(dict.fromkeys(texts))
    number = {text: code for code, text in enumerate(spelled)}
    codes = np.array([number[text] for text in texts], np.int32)
    return codes[given.indices.to_numpy()], spelled


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return 1.0 if a == b else len(a & b) / len(a | b)


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""What is kept of a distribution."""


def quantiles(values: F8, group: I4, n_groups: int, q: tuple[float, ...] = QUANTILES) -> F8:
    """Return quantiles of each group's values, interpolated; NaN values are left out."""
    known = ~np.isnan(values)
    values, group = values[known], group[known]
    order = np.lexsort((values, group))
    values = values[order]
    n = np.bincount(group, minlength=n_groups)
    first = offsets(n)[:-1]
    out = np.full((n_groups, len(q)), np.nan)
    some = np.flatnonzero(n)
    for column, share in enumerate(q):
        place = first[some] + share * (n[some] - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, first[some] + n[some] - 1)
        part = place - low
        apart = np.zeros(len(some))
        np.subtract(values[high], values[low], out=apart, where=values[high] != values[low])
        rise = np.zeros(len(some))
        np.multiply(part, apart, out=rise, where=part > 0)
        out[some, column] = values[low] + rise
    return out


def medians(values: F8, group: I4, n_groups: int) -> F8:
    """Return the median of each group's values, (G,); NaN values are left out."""
    return quantiles(values, group, n_groups, (0.5,))[:, 0]


INPUT_MODES = ("none", "blind", "poll")
"""A job needs no input of recurring jobs, is submitted without looking, or waits for it."""
QUARTER_S = 90 * DAY_S


@dataclass(frozen=True)
class Thresholds:
    """The numbers in Table 1, and those that it leaves open."""

    min_submissions: int = 3  # least runs of a recurring template, in the whole log
    # a recurring template has a run in each whole period of what is learnt from. None: 30 days if
    # that is three months or longer, else a week (or all of it, if it is shorter)
    period_s: float | None = None
    # greatest coefficient of variation of a periodic template's inter-arrival times: clocks are
    # exact to seconds, while what waits for input varies as its inputs' run times do
    periodic_cv: float = 0.01
    # a polling job is submitted at most so long after its last input was complete
    polling_lag_s: float = 15 * 60.0
    polling_share: float = 0.5  # a template polls if at least this share of its jobs do
    # more than this share of a template's jobs consume one job's output: a hard dependency
    hard_share: float = 0.95


@dataclass(frozen=True, eq=False)
class Classification:
    """What Table 1 tells apart."""

    recurring: Mask  # of templates; `never_missed`: no job failed for want of an input
    periodic: Mask
    never_missed: Mask
    # mean time between submissions and its coefficient of variation; NaN with too few
    interarrival_s: F8
    interarrival_cv: F8
    template_polls: Mask  # templates most of whose jobs poll
    job_recurring: Mask  # of jobs; ad hoc jobs are those not recurring
    job_polls: Mask
    edge_recurring: Mask  # of dependencies; ad hoc ones are those not recurring
    edge_hard: Mask
    edge_polls: Mask
    input_mode: I1  # an index into `INPUT_MODES`


def classify(
    logs: Logs,
    templates: Templates,
    edges: Dependencies,
    thresholds: Thresholds | None = None,
    *,
    learn: tuple[float, float] | None = None,
) -> Classification:
    """Apply Table 1's heuristics."""
    limits = Thresholds() if thresholds is None else thresholds
    submit_s, of_job = logs.column("submit_s"), templates.job_template
    recurring = recurring_templates(submit_s, of_job, len(templates), limits, learn)
    mean_s, cv = inter_arrivals(submit_s, of_job, len(templates))
    periodic = recurring & (cv <= limits.periodic_cv)
    missed = np.zeros(len(templates), bool)
    missed[of_job[logs.has("outcome", "missing_input")]] = True

    job_recurring = recurring[of_job]
    edge_recurring = job_recurring[edges.upstream] & job_recurring[edges.downstream]
    edge_hard = hard_edges(submit_s, of_job, edges, edge_recurring, limits.hard_share)
    lag_s = _since_last_input(logs, edges.where(edge_recurring))
    may_poll = recurring & ~periodic & ~missed
    has_input = ~np.isnan(lag_s)
    with np.errstate(invalid="ignore"):
        soon = has_input & (lag_s >= 0) & (lag_s <= limits.polling_lag_s)
    job_polls = may_poll[of_job] & soon
    share = _share(of_job, job_polls, has_input, len(templates))
    mode = np.zeros(logs.n_jobs, np.int8)
    needs = np.zeros(logs.n_jobs, bool)
    needs[edges.downstream[edge_recurring & edge_hard]] = True
    mode[needs] = INPUT_MODES.index("blind")
    mode[job_polls] = INPUT_MODES.index("poll")
    return Classification(
        recurring=recurring, periodic=periodic, never_missed=~missed, interarrival_s=mean_s,
        interarrival_cv=cv, template_polls=may_poll & (share >= limits.polling_share),
        job_recurring=job_recurring, job_polls=job_polls, edge_recurring=edge_recurring,
        edge_hard=edge_hard, edge_polls=edge_recurring & job_polls[edges.downstream],
        input_mode=mode,
    )  # fmt: skip


def recurring_templates(
    submit_s: F8,
    template: I4,
    n_templates: int,
    limits: Thresholds,
    learn: tuple[float, float] | None = None,
) -> Mask:
    """Return which templates recur: often enough, and in each period of what is learnt from."""
    if not len(submit_s):
        return np.zeros(n_templates, bool)
    begin, end = (float(submit_s[0]), float(submit_s[-1])) if learn is None else learn
    if end < begin or (learn is not None and end == begin):
        raise InputError(f"what is learnt from must end after {begin:g} s, not at {end:g} s")
    span = end - begin
    default = 30 * DAY_S if span >= QUARTER_S else 7 * DAY_S
    period = default if limits.period_s is None else limits.period_s
    n_periods = max(1, int(span / period + 1e-6))
    often = np.bincount(template, minlength=n_templates) >= limits.min_submissions
    last = begin + n_periods * period if span >= period else np.inf
    inside = (submit_s >= begin) & (submit_s < last)
    number = ((submit_s[inside] - begin) / period).astype(np.int64).clip(0, n_periods - 1)
    seen = np.zeros((n_templates, n_periods), bool)
    seen[template[inside], number] = True
    return often & seen.all(axis=1)


def inter_arrivals(submit_s: F8, template: I4, n_templates: int) -> tuple[F8, F8]:
    """Return mean and coefficient of variation of each template's inter-arrival times.

    The mean is NaN below two submissions, the variation below three.
    """
    order = np.argsort(template, kind="stable")
    same = template[order][1:] == template[order][:-1]
    of, gap = template[order][1:][same], np.diff(submit_s[order])[same]
    n = np.bincount(of, minlength=n_templates)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(of, gap, n_templates) / n
        deviation = np.sqrt(np.bincount(of, (gap - mean[of]) ** 2, n_templates) / n)
        cv = np.where(n >= 2, deviation / mean, np.nan)
    return mean, cv


def hard_edges(
    submit_s: F8, template: I4, edges: Dependencies, edge_recurring: Mask, hard_share: float
) -> Mask:
    """Return which dependencies are hard: (a) ad hoc, (b) on one job each, (c) on equally many.

    For each pair of recurring templates the jobs of the downstream one are looked at that were
    submitted once the upstream one's first output had been read: (b) if more than `hard_share` of
    them consume the output of exactly one job, or (c) if all consume equally many. Of those that
    read the runs of some days, the first find fewer where the log begins: these are left out, as
    long as they are not more than the others.
    """
    hard = ~edge_recurring
    place = np.flatnonzero(edge_recurring)
    if not len(place):
        return hard
    up, down = edges.upstream[place], edges.downstream[place]
    n_templates = int(template.max()) + 1
    pair = template[up].astype(np.int64) * n_templates + template[down]
    pairs, of = np.unique(pair, return_inverse=True)
    # one entry a (pair of templates, downstream job), with how many jobs it consumes there
    entry, n_consumed = np.unique(of * np.int64(len(submit_s)) + down, return_counts=True)
    of_entry = entry // len(submit_s)
    first_job = np.full(len(pairs), len(submit_s), np.int64)
    np.minimum.at(first_job, of_entry, entry % len(submit_s))
    by_template = np.argsort(template, kind="stable")
    start = np.searchsorted(template[by_template], np.arange(n_templates + 1))
    code = pairs % n_templates
    # jobs of the downstream template from `first_job` on; rows are in order of submission
    key = template[by_template].astype(np.int64) * len(submit_s) + by_template
    n_jobs = start[code + 1] - np.searchsorted(key, code * np.int64(len(submit_s)) + first_job)
    n_one = np.bincount(of_entry, n_consumed == 1, len(pairs))
    most = np.zeros(len(pairs), np.int64)
    np.maximum.at(most, of_entry, n_consumed)
    job, full = entry % len(submit_s), n_consumed == most[of_entry]
    first_full = np.full(len(pairs), len(submit_s), np.int64)
    np.minimum.at(first_full, of_entry[full], job[full])
    n_from = start[code + 1] - np.searchsorted(key, code * np.int64(len(submit_s)) + first_full)
    n_full = np.bincount(of_entry, full, len(pairs))
    is_hard = (n_one > hard_share * n_jobs) | ((n_full == n_from) & (2 * n_full >= n_jobs))
    hard[place] = is_hard[of]
    return hard


def _since_last_input(logs: Logs, edges: Dependencies) -> F8:
    """Return the time from the last input's completion to each job's submission; NaN: no input."""
    last_s = np.full(logs.n_jobs, -np.inf)
    np.maximum.at(last_s, edges.downstream, logs.column("finish_s")[edges.upstream])
    return np.where(np.isinf(last_s), np.nan, logs.column("submit_s") - last_s)


def _share(group: I4, hit: Mask, counted: Mask, n_groups: int) -> F8:
    n = np.bincount(group[counted], minlength=n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        out: F8 = np.bincount(group[counted & hit], minlength=n_groups) / n
    return out
