"""Ledger of judgements, ``results/judged.yaml``: rule, seeds, workloads and outcome of each.

The head of that file explains the keys. Entries are appended and not changed afterwards: a second
judgement of a claim is a second entry, with its reason. Seeds of development stand there too: an
entry with the key ``development`` names the claims that they can't judge.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from sim.base import files
from sim.base.errors import InputError
from sim.base.plugins import check_names

NAME = "judged.yaml"
BEGUN = "2026-11-25"
"""First day of the ledger. Earlier judgements were entered from git, reused seeds included."""
DEVELOPMENT = "development"
DEVELOPED = "2026-11-30"
"""First day on which no judgement takes seeds of development of its traces, whatever its claim."""
SHORT = 12
"""Hexadecimal digits of a workload's digest on a page."""

_T = TypeVar("_T")
_REQUIRED = ("claim", "rule", "seeds", "workload", "judged", "outcome")
_OPTIONAL = ("pages", "again", "reused")
_DEVELOPMENT_KEYS = (DEVELOPMENT, "claims", "seeds", "workload", "file", "passage")
_TEXTS = ("claim", "seeds", "judged", "outcome", "again", "reused")
_RULE_KEYS = ("file", "begins", "ends", "sha256", "committed", "amended")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class Rule:
    """Rule of a judgement: a passage of a file, its digest, and when it was committed."""

    file: str
    sha256: str
    committed: str  # date and commit
    begins: str = ""  # first words of the passage; empty for the file's beginning
    ends: str = ""  # first words after it; empty for the file's end
    amended: tuple[Mapping[str, str], ...] = ()  # later changes: committed, sha256, why

    @property
    def date(self) -> str:
        """Day on which it was committed."""
        return self.committed.split()[0]


@dataclass(frozen=True)
class Entry:
    """One judgement of one claim."""

    claim: str
    rule: Rule | None  # none was written, in some early judgements
    seeds: str  # such as ``20-39, 60-99``
    workload: Mapping[
        str, str
    ]  # digest of each trace's workloads: ``content ...``, ``sources ...``
    judged: str  # date and commit
    outcome: str
    pages: Mapping[str, str]  # numbers that were judged, by page
    again: str = ""  # reason of a later judgement of the same claim
    reused: str = ""  # reason of seeds that an earlier entry has

    @property
    def date(self) -> str:
        """Day of the judgement."""
        return self.judged.split()[0]

    @property
    def seed_set(self) -> frozenset[int]:
        """Seeds, each by itself."""
        return frozenset(parse_seeds(self.seeds))


@dataclass(frozen=True)
class Development:
    """Seeds on which something was set, chosen or tried."""

    purpose: str
    claims: tuple[str, ...]  # that these seeds can't judge
    seeds: str
    workload: tuple[str, ...]  # traces
    file: str  # of the record that states it
    words: str  # that begin the passage

    @property
    def seed_set(self) -> frozenset[int]:
        """Seeds, each by itself."""
        return frozenset(parse_seeds(self.seeds))


def read(path: Path) -> list[Entry]:
    """Read the judgements of a ledger; empty if there is none.

    Raises InputError if an entry lacks a key, or has one that means nothing.
    """
    return _read(path, lambda content: None if _is_development(content) else entry(content))


def read_development(path: Path) -> list[Development]:
    """Read the seeds of development in a ledger; empty if there is none. Raises as `read`."""
    return _read(path, lambda content: _development(content) if _is_development(content) else None)


def _read(path: Path, record: Callable[[Any], _T | None]) -> list[_T]:
    import yaml

    if not path.is_file():
        return []
    try:
        contents = yaml.safe_load(path.read_text(encoding="utf-8")) or []
        return [item for item in map(record, contents) if item is not None]
    except (yaml.YAMLError, InputError, TypeError, ValueError) as error:
        raise InputError(f"not a ledger of judgements: {error}", file=path) from error


def append(path: Path, content: Mapping[str, Any]) -> None:
    """Append an entry to a ledger, whose text before it stays as it is."""
    import yaml

    entry(content)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    text = yaml.safe_dump(
        [{key: value for key, value in content.items() if value}],
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )
    files.write_text(path, f"{before}\n{text}" if before else text)


def passage(text: str, begins: str = "", ends: str = "") -> str:
    """Return the passage between two texts, each run of white space as one space.

    It ends with the text if `ends` is not there: results are written below a rule later.

    Raises InputError if `begins` is not there.
    """
    folded = " ".join(text.split())
    begins, ends = " ".join(begins.split()), " ".join(ends.split())
    start = folded.find(begins)
    if start < 0:
        raise InputError(f"the passage that begins with {begins!r} is not there")
    end = folded.find(ends, start + len(begins)) if ends else -1
    return folded[start : end if end >= 0 else None].strip()


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def parse_seeds(text: str) -> Iterator[int]:
    """Yield the seeds of a text such as ``20-39, 60-99``; none for an empty text."""
    for part in filter(None, map(str.strip, str(text).split(","))):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise InputError(f"seeds: {part!r} is neither a number nor a range such as 20-39")
        yield from range(int(match[1]), int(match[2] or match[1]) + 1)


def format_seeds(seeds: Iterable[int]) -> str:
    """Write seeds as ranges, such as ``20-39, 60-99``."""
    ranges: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if ranges and ranges[-1][1] == seed - 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return ", ".join(f"{low}-{high}" if low < high else f"{low}" for low, high in ranges)


def workload_digests(inputs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Digest the contents of a sweep's workloads of the first seed, by trace.

    `inputs` are those of ``provenance.json``.
    """
    contents: dict[str, set[str]] = {}
    for workload in inputs:
        if "digest" in workload:
            contents.setdefault(workload["trace"], set()).add(workload["digest"])
    return {trace: digest(" ".join(sorted(digests))) for trace, digests in contents.items()}


def numbers(rows: Iterable[Mapping[str, Any]]) -> str:
    """Numbers of a page that are judged: of rows with an expected range, else with a paper's.

    Where no row has either it is all rows.
    """
    listed = list(rows)
    judged = next(
        (chosen for key in ("met", "paper") if (chosen := [row for row in listed if row.get(key)])),
        listed,
    )
    return " ".join(str(row["ours"]) for row in judged)


def times(entries: Iterable[Entry], claim: str) -> int:
    """Count how often a claim was judged; several pages are parts of one judgement."""
    judgements = [entry for entry in entries if entry.claim == claim]
    by_page = Counter(page for entry in judgements for page in entry.pages)
    return max(by_page.values(), default=0) + sum(not entry.pages for entry in judgements)


def judgements_of(entries: Iterable[Entry], page: str) -> list[Entry]:
    """Return the judgements of a page, in order."""
    return [entry for entry in entries if page in entry.pages]


def repeated_claims(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield later judgements of a claim that give no reason; other pages are parts of the first."""
    for earlier, later in combinations(entries, 2):
        if earlier.claim == later.claim and not later.again and not _is_other_part(earlier, later):
            yield f"{later.claim}, {later.judged}: a later judgement gives its reason: again"


def repeated_seeds(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield entries with seeds that an earlier one has on the same trace, or for the same claim.

    Pages of one claim may share them. Only entries before `BEGUN` may give a reason instead.
    """
    for earlier, later in combinations(entries, 2):
        common = earlier.seed_set & later.seed_set
        is_same_claim = earlier.claim == later.claim
        if not common or not (is_same_claim or earlier.workload.keys() & later.workload.keys()):
            continue
        if is_same_claim and _is_other_part(earlier, later):
            continue
        if not later.reused or later.judged >= BEGUN:
            yield (
                f"{later.claim}, {later.judged}: seeds {format_seeds(common)} were used before, by "
                f"{earlier.claim}, {earlier.judged}: judge on fresh ones"
            )


def developed_seeds(entries: Iterable[Entry], developments: Sequence[Development]) -> Iterator[str]:
    """Yield judgements on seeds on which something was developed, of the same claim.

    Since `DEVELOPED` also of the same trace: a rival or the generator may have been set on them.
    """
    for judgement in entries:
        for development in developments:
            common = judgement.seed_set & development.seed_set
            is_same = judgement.claim in development.claims or (
                judgement.date >= DEVELOPED
                and not judgement.workload.keys().isdisjoint(development.workload)
            )
            if common and is_same:
                yield (
                    f"{judgement.claim}, {judgement.judged}: seeds {format_seeds(common)} were used"
                    f" for development ({development.purpose}): judge on fresh ones"
                )


def _is_other_part(earlier: Entry, later: Entry) -> bool:
    """Tell whether an entry is of other pages of the same judgement."""
    has_pages = bool(earlier.pages and later.pages)
    is_same = earlier.again == later.again
    return has_pages and is_same and not earlier.pages.keys() & later.pages.keys()


def page_text(entries: Iterable[Entry], page: str, workloads: Mapping[str, str]) -> str:
    """Write the passage of a page on its judgements; *not judged* if it has none.

    `workloads` has the digest of the workloads that the page was made with, by trace.
    """
    listed = list(entries)
    claims = dict.fromkeys(judgement.claim for judgement in judgements_of(listed, page))
    if not claims:
        return f"The numbers of this page are not judged by a rule (results/{NAME})."
    parts = []
    for claim in claims:
        n = times(listed, claim)
        count = {1: "once", 2: "twice"}.get(n, f"{n} times")
        lines = [
            _line(entry)
            for entry in listed
            if entry.claim == claim and (page in entry.pages or not entry.pages)
        ]
        parts.append("\n".join([f"Judged {count} as `{claim}` (results/{NAME}):\n", *lines]))
    digests = ", ".join(f"`{trace}` {key[:SHORT]}" for trace, key in workloads.items())
    return "\n\n".join([*parts, *([f"Workloads: {digests}."] if digests else [])])


def _line(judgement: Entry) -> str:
    rule = judgement.rule
    by = f"the rule in {rule.file}, committed on {rule.date}" if rule else "no written rule"
    reason = f" {judgement.again}" if judgement.again else ""
    return f"- {judgement.date}, seeds {judgement.seeds}, by {by}.{reason}"


def entry(content: Any) -> Entry:
    """Check the keys of an entry; build the record."""
    if not isinstance(content, Mapping):
        raise InputError(f"an entry has the keys {', '.join(_REQUIRED)}, not {content!r}")
    check_names("key of an entry", map(str, content), (*_REQUIRED, *_OPTIONAL), rule=None)
    if absent := [key for key in _REQUIRED if key not in content]:
        raise InputError(f"entry {content.get('claim', '')!r} lacks {', '.join(absent)}")
    texts = {key: str(content.get(key) or "").strip() for key in _TEXTS}
    pages = {page: str(text) for page, text in (content.get("pages") or {}).items()}
    rule = None if content["rule"] is None else _rule(content["rule"])
    judgement = Entry(rule=rule, workload=dict(content["workload"] or {}), pages=pages, **texts)
    list(parse_seeds(judgement.seeds))
    if rule is None and judgement.date >= BEGUN:
        raise InputError(f"entry {judgement.claim!r} has no rule; write one before its results")
    return judgement


def _is_development(content: Any) -> bool:
    return isinstance(content, Mapping) and DEVELOPMENT in content


def _development(content: Mapping[str, Any]) -> Development:
    check_names("key of development", map(str, content), _DEVELOPMENT_KEYS, rule=None)
    if absent := [key for key in _DEVELOPMENT_KEYS if key not in content]:
        raise InputError(f"development {content[DEVELOPMENT]!r} lacks {', '.join(absent)}")
    purpose, seeds, file, words = (
        str(content[key]) for key in (DEVELOPMENT, "seeds", "file", "passage")
    )
    list(parse_seeds(seeds))
    claims, workload = (tuple(map(str, content[key])) for key in ("claims", "workload"))
    return Development(purpose, claims, seeds, workload, file, words)


def _rule(content: Mapping[str, Any]) -> Rule:
    check_names("key of a rule", map(str, content), _RULE_KEYS, rule=None)
    return Rule(**{**content, "amended": tuple(content.get("amended") or ())})
