"""Templates: jobs grouped by program, and their classification by Table 1 and its thresholds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from policies.wing.lineage.dependencies import DAY_S, Dependencies
from policies.wing.lineage.logs import Logs
from sim.base.arrays import F8, I1, I4, Mask, offsets
from sim.base.errors import InputError

PATTERNS: Final[Mapping[str, str]] = {
    "uuid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "digest": r"(?<![a-z0-9])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?![a-z0-9])",
    "date": (
        r"(?<![0-9])[0-9]{4}[-_./][0-9]{1,2}(?![0-9])(?:[-_./][0-9]{1,2}(?![0-9]))?"
        r"(?:[t _-][0-9]{1,2}(?:[:.-][0-9]{2}){0,2}z?)?"
    ),
    # with a time of day after it, but not with the year of a date
    "number": r"[0-9]{6,}(?:[t_-](?!(?:19|20)[0-9]{2}[-_./][0-9])[0-9]{2,6}z?)?",
    "generated": r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])",
}
"""Patterns of text that varies between runs of one program, by name.

Short numbers stay, as they may distinguish programs (``load_part_2``). ``generated`` is the end
that Kubernetes appends to a ``generateName``.
"""
DEFAULT_PATTERNS: Final = ("uuid", "digest", "date", "number")
VARYING: Final = tuple(PATTERNS[name] for name in DEFAULT_PATTERNS)
"""Patterns of text that is replaced in names and signatures."""
SIMILARITY = 0.8
"""Minimum Jaccard similarity between the words of two signatures of one program."""
_WORD = re.compile(r"[\w#]+")


def varying_patterns(chosen: str | Sequence[str]) -> tuple[str, ...]:
    """Return the patterns of text that varies: by name, ``default`` for those used by default.

    A text is a list of names between commas, or one regular expression. Text is in lower case when
    patterns are applied.

    Raises
    ------
    InputError
        If a pattern is no regular expression.
    """
    known = {**PATTERNS, "default": ""}
    if isinstance(chosen, str):
        parts = [part.strip() for part in chosen.split(",")]
        chosen = [chosen] if any(part and part not in known for part in parts) else parts
    patterns: list[str] = []
    for part in chosen:
        patterns += VARYING if part == "default" else [PATTERNS.get(part, part)]
    try:
        re.compile("|".join(patterns))
    except re.error as error:
        raise InputError(
            f"varying must be names of patterns ({', '.join(known)}) or regular expressions, not "
            f"{chosen!r}: {error}",
            rule="wrong option",
        ) from None
    return tuple(pattern for pattern in patterns if pattern)


@dataclass(frozen=True, eq=False)
class Templates:
    """Programs, ordered by their first run."""

    job_template: I4  # template of each job
    name: list[str]  # normalised names; numbered if different programs share one

    def __len__(self) -> int:
        """Return the number of templates."""
        return len(self.name)


def normalize(texts: list[str], varying: tuple[str, ...] = VARYING) -> list[str]:
    """Return `texts` in lower case, with matches of the patterns `varying` replaced by ``#``."""
    if not varying:
        return [text.lower() for text in texts]
    pattern = re.compile("|".join(varying))
    return [pattern.sub("#", text.lower()) for text in texts]


def find_templates(
    logs: Logs, *, similarity: float = SIMILARITY, varying: tuple[str, ...] = VARYING
) -> Templates:
    """Group jobs with equal normalised names and approximately equal signatures.

    A signature is a set of words. It joins the first group whose first signature is similar enough.
    """
    name, names = _normalized_codes(logs, "template_name", varying)
    signature, signatures = _normalized_codes(logs, "signature", varying, keep_opaque=True)
    pair = name.astype(np.int64) * max(len(signatures), 1) + signature
    distinct, first, pair_index = np.unique(pair, return_index=True, return_inverse=True)
    in_order = np.argsort(first, kind="stable")  # by the first run
    group: dict[int, list[tuple[frozenset[str], int]]] = {}
    template_names: list[str] = []
    template = np.empty(len(distinct), np.int32)
    for index in in_order.tolist():
        code, sign = divmod(int(distinct[index]), max(len(signatures), 1))
        words = frozenset(_WORD.findall(signatures[sign]))
        leaders = group.setdefault(code, [])
        for leader, number in leaders:
            if _jaccard(words, leader) >= similarity:
                template[index] = number
                break
        else:
            template[index] = len(template_names)
            leaders.append((words, len(template_names)))
            tail = f" ({len(leaders)})" if len(leaders) > 1 else ""
            template_names.append(names[code] + tail)
    return Templates(template[pair_index], template_names)


def _normalized_codes(
    logs: Logs, column: str, varying: tuple[str, ...], *, keep_opaque: bool = False
) -> tuple[I4, list[str]]:
    """Normalise a text column; return codes and their spellings.

    With `keep_opaque` a text that varies as a whole stays as it is: a digest of source code.
    """
    column_values = logs.jobs[column].chunk(0)
    originals = column_values.dictionary.to_pylist()
    texts = normalize(originals, varying)
    if keep_opaque:
        texts = [
            raw.lower() if text.strip() == "#" else text
            for raw, text in zip(originals, texts, strict=True)
        ]
    spellings = list(dict.fromkeys(texts))
    number = {text: code for code, text in enumerate(spellings)}
    codes = np.array([number[text] for text in texts], np.int32)
    return codes[column_values.indices.to_numpy()], spellings


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return 1.0 if a == b else len(a & b) / len(a | b)


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles stored for each distribution."""


def quantiles(values: F8, group: I4, n_groups: int, q: tuple[float, ...] = QUANTILES) -> F8:
    """Compute interpolated quantiles of each group's values, (G, Q); NaN values are ignored."""
    known = ~np.isnan(values)
    values, group = values[known], group[known]
    order = np.lexsort((values, group))
    values = values[order]
    n = np.bincount(group, minlength=n_groups)
    first = offsets(n)[:-1]
    out = np.full((n_groups, len(q)), np.nan)
    non_empty = np.flatnonzero(n)
    for column, share in enumerate(q):
        rank = share * (n[non_empty] - 1)  # within the group: other groups change no bit
        whole = np.floor(rank).astype(np.int64)
        low = first[non_empty] + whole
        high = np.minimum(low + 1, first[non_empty] + n[non_empty] - 1)
        part = rank - whole
        step = np.zeros(len(non_empty))
        np.subtract(values[high], values[low], out=step, where=values[high] != values[low])
        rise = np.zeros(len(non_empty))
        np.multiply(part, step, out=rise, where=part > 0)
        out[non_empty, column] = values[low] + rise
    return out


def medians(values: F8, group: I4, n_groups: int) -> F8:
    """Compute the median of each group's values, (G,); NaN values are ignored."""
    return quantiles(values, group, n_groups, (0.5,))[:, 0]


INPUT_MODES = ("none", "blind", "poll")
"""A job needs no input from recurring jobs, is submitted without checking it, or waits for it."""
QUARTER_S = 90 * DAY_S


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of Table 1, including those that the paper leaves open."""

    min_submissions: int = 3  # minimum runs of a recurring template, in the whole log
    # a recurring template has a run in each whole period of the learning interval. None: 30 days if
    # the interval is three months or longer, else a week (or all of it, if it is shorter)
    period_s: float | None = None
    # maximum coefficient of variation of a periodic template's inter-arrival times: clock-driven
    # runs are exact to seconds, while runs that wait for input vary with their inputs' run times
    periodic_cv: float = 0.01
    # maximum delay between a polling job's last input and its submission
    polling_lag_s: float = 15 * 60.0
    polling_share: float = 0.5  # a template polls if at least this share of its jobs do
    # a dependency is hard if more than this share of a template's jobs consume one job's output
    hard_share: float = 0.95


@dataclass(frozen=True, eq=False)
class Classification:
    """Classification of templates, jobs and dependencies by Table 1."""

    recurring: Mask  # of templates; `never_missed`: no job failed because an input was missing
    periodic: Mask
    never_missed: Mask
    # mean time between submissions and its coefficient of variation; NaN with too few submissions
    interarrival_s: F8
    interarrival_cv: F8
    template_polls: Mask  # templates most of whose jobs poll
    job_recurring: Mask  # of jobs; the others are ad hoc
    job_polls: Mask
    edge_recurring: Mask  # of dependencies; the others are ad hoc
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
    """Classify templates, jobs and dependencies by Table 1's heuristics."""
    limits = Thresholds() if thresholds is None else thresholds
    submit_s, job_template = logs.column("submit_s"), templates.job_template
    recurring = recurring_templates(submit_s, job_template, len(templates), limits, learn)
    mean_s, cv = inter_arrivals(submit_s, job_template, len(templates))
    periodic = recurring & (cv <= limits.periodic_cv)
    missed = np.zeros(len(templates), bool)
    missed[job_template[logs.has("outcome", "missing_input")]] = True

    job_recurring = recurring[job_template]
    edge_recurring = job_recurring[edges.upstream] & job_recurring[edges.downstream]
    edge_hard = hard_edges(submit_s, job_template, edges, edge_recurring, limits.hard_share)
    lag_s = _since_last_input(logs, edges.where(edge_recurring))
    can_poll = recurring & ~periodic & ~missed
    has_input = ~np.isnan(lag_s)
    with np.errstate(invalid="ignore"):
        soon = has_input & (lag_s >= 0) & (lag_s <= limits.polling_lag_s)
    job_polls = can_poll[job_template] & soon
    share = _share(job_template, job_polls, has_input, len(templates))
    mode = np.zeros(logs.n_jobs, np.int8)
    needs_input = np.zeros(logs.n_jobs, bool)
    needs_input[edges.downstream[edge_recurring & edge_hard]] = True
    mode[needs_input] = INPUT_MODES.index("blind")
    mode[job_polls] = INPUT_MODES.index("poll")
    return Classification(
        recurring=recurring, periodic=periodic, never_missed=~missed, interarrival_s=mean_s,
        interarrival_cv=cv, template_polls=can_poll & (share >= limits.polling_share),
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
    """Return a mask of the recurring templates: enough runs, and a run in each learning period."""
    if not len(submit_s):
        return np.zeros(n_templates, bool)
    begin, end = (float(submit_s[0]), float(submit_s[-1])) if learn is None else learn
    if end < begin or (learn is not None and end == begin):
        raise InputError(
            f"the interval to learn from must end after its begin, {begin:g} s, not at {end:g} s"
        )
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
    """Compute mean and coefficient of variation of each template's inter-arrival times.

    The mean is NaN below two submissions, the variation below three.
    """
    order = np.argsort(template, kind="stable")
    same = template[order][1:] == template[order][:-1]
    gap_template, gap = template[order][1:][same], np.diff(submit_s[order])[same]
    n = np.bincount(gap_template, minlength=n_templates)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(gap_template, gap, n_templates) / n
        deviation = np.sqrt(
            np.bincount(gap_template, (gap - mean[gap_template]) ** 2, n_templates) / n
        )
        cv = np.where(n >= 2, deviation / mean, np.nan)
    return mean, cv


def hard_edges(
    submit_s: F8, template: I4, edges: Dependencies, edge_recurring: Mask, hard_share: float
) -> Mask:
    """Return a mask of hard dependencies: (a) ad hoc, (b) on one job each, (c) on equally many.

    Each pair of recurring templates is judged by the downstream jobs submitted since the upstream
    template's output was first read. The pair is hard (b) if more than `hard_share` of them consume
    the output of exactly one job, or (c) if all consume equally many. Jobs that read the runs of
    several days find fewer runs near the start of the log: these first jobs are ignored, as long as
    they are not more than the others.
    """
    hard = ~edge_recurring
    recurring = np.flatnonzero(edge_recurring)
    if not len(recurring):
        return hard
    up, down = edges.upstream[recurring], edges.downstream[recurring]
    n_templates = int(template.max()) + 1
    pair = template[up].astype(np.int64) * n_templates + template[down]
    pairs, edge_pair = np.unique(pair, return_inverse=True)
    # one entry per (pair of templates, downstream job): the number of upstream jobs it consumes
    entry, n_consumed = np.unique(edge_pair * np.int64(len(submit_s)) + down, return_counts=True)
    entry_pair = entry // len(submit_s)
    first_job = np.full(len(pairs), len(submit_s), np.int64)
    np.minimum.at(first_job, entry_pair, entry % len(submit_s))
    by_template = np.argsort(template, kind="stable")
    start = np.searchsorted(template[by_template], np.arange(n_templates + 1))
    code = pairs % n_templates
    # jobs of the downstream template from `first_job` on; rows are in order of submission
    key = template[by_template].astype(np.int64) * len(submit_s) + by_template
    n_jobs = start[code + 1] - np.searchsorted(key, code * np.int64(len(submit_s)) + first_job)
    n_one = np.bincount(entry_pair, n_consumed == 1, len(pairs))
    max_consumed = np.zeros(len(pairs), np.int64)
    np.maximum.at(max_consumed, entry_pair, n_consumed)
    job, full = entry % len(submit_s), n_consumed == max_consumed[entry_pair]
    first_full = np.full(len(pairs), len(submit_s), np.int64)
    np.minimum.at(first_full, entry_pair[full], job[full])
    n_from = start[code + 1] - np.searchsorted(key, code * np.int64(len(submit_s)) + first_full)
    n_full = np.bincount(entry_pair, full, len(pairs))
    is_hard = (n_one > hard_share * n_jobs) | ((n_full == n_from) & (2 * n_full >= n_jobs))
    hard[recurring] = is_hard[edge_pair]
    return hard


def _since_last_input(logs: Logs, edges: Dependencies) -> F8:
    """Compute the time from each job's last input's completion to its submission; NaN: no input."""
    last_s = np.full(logs.n_jobs, -np.inf)
    np.maximum.at(last_s, edges.downstream, logs.column("finish_s")[edges.upstream])
    return np.where(np.isinf(last_s), np.nan, logs.column("submit_s") - last_s)


def _share(group: I4, hit: Mask, counted: Mask, n_groups: int) -> F8:
    n = np.bincount(group[counted], minlength=n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        out: F8 = np.bincount(group[counted & hit], minlength=n_groups) / n
    return out
