"""Compare the ledger of judgements with itself, with the rules in the repository and with pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sim.base.errors import InputError
from sweep.questions.papers import ledger
from sweep.questions.papers.ledger import (
    NAME,
    SHORT,
    Entry,
    judgements_of,
    times,
)
from sweep.questions.papers.pages import PageTable

_SENTENCE = re.compile(r"(?<=[.;:?!])\s+")
_PARAGRAPH = re.compile(r"\n\s*\n")
_ONCE = re.compile(
    r"(?<!at )(?<![\"“])\bonce\b(?! (?:more|it|they|a|an|the)\b)(?![\"”])|\bsingle judgement\b",
    re.I,
)
_JUDGED = re.compile(r"\bjudg|\bverdict\b|\b(?:is|was|be|been|were) (?:read|looked at)\b", re.I)
_READ_ONCE = re.compile(r"\bread\W+once\b", re.I)
_WORKLOADS = re.compile(r"^Workloads: (.*)\.$", re.M)
_WORKLOAD = re.compile(r"`([^`]+)` ([0-9a-f]+)")


def problems(entries: Sequence[Entry], root: Path, pages: Mapping[str, str]) -> Iterator[str]:
    """Yield what a ledger contradicts: its entries, the rules in `root`, and texts of `pages`.

    `pages` has the text of each file in `root`, by its path.
    """
    yield from ledger.repeated_claims(entries)
    yield from ledger.repeated_seeds(entries)
    yield from changed_rules(entries, root)
    for path, text in pages.items():
        yield from once_sentences(entries, path, text)
        yield from other_workloads(entries, root / path, path, text)


def development(path: Path, root: Path) -> Iterator[str]:
    """Yield judgements on seeds of development, and development that no record states."""
    entries, developments = ledger.read(path), ledger.read_development(path)
    yield from ledger.developed_seeds(entries, developments)
    known = {entry.claim for entry in entries}
    for developed in developments:
        text = (root / developed.file).read_text(encoding="utf-8")
        try:
            ledger.passage(text, developed.words)
        except InputError as error:
            yield f"{developed.file}: {error}"
        if unknown := set(developed.claims) - known:
            yield f"{developed.purpose}: {', '.join(sorted(unknown))} was never judged"


def changed_rules(entries: Sequence[Entry], root: Path) -> Iterator[str]:
    """Yield rules that are younger than the judgement, or whose passage has changed unrecorded."""
    for entry in entries:
        rule = entry.rule
        if rule is None:
            continue
        if rule.date > entry.date:
            yield f"{entry.claim}, {entry.judged}: its rule is of {rule.date}, after the judgement"
        try:
            text = (root / rule.file).read_text(encoding="utf-8")
            current = ledger.digest(ledger.passage(text, rule.begins, rule.ends))
        except (OSError, InputError) as error:
            yield f"{entry.claim}, {entry.judged}: its rule in {rule.file} is gone: {error}"
            continue
        last = rule.amended[-1]["sha256"] if rule.amended else rule.sha256
        if current != last:
            yield (
                f"{entry.claim}, {entry.judged}: its rule in {rule.file} has changed since: restore"
                f" it, or add what changed and why, sha256 {current}, to `amended` in {NAME}"
            )


def once_sentences(entries: Sequence[Entry], path: str, text: str) -> Iterator[str]:
    """Yield sentences that call a judgement the only one, where the ledger does not agree.

    In the file of a rule only the judgements by that rule count.
    """
    for paragraph in _PARAGRAPH.split(text):
        folded = " ".join(paragraph.split())
        for quoted in _SENTENCE.split(folded):
            if not _says_once(quoted):
                continue
            claims = _claims(entries, path, quoted) or _claims(entries, path, folded, also_all=True)
            for claim in claims:
                by_rule = [
                    e for e in entries if e.claim == claim and e.rule and e.rule.file == path
                ]
                if (n := times(by_rule or entries, claim)) > 1:
                    yield f"{path}: {quoted!r}: {claim} was judged {n} times"
            is_rule = "/decisions/" in path  # its claim may be judged later
            if not claims and not is_rule and re.search(r"\bjudged?\b", quoted):
                yield f"{path}: {quoted!r}: the ledger has no entry of it"


def other_workloads(entries: Sequence[Entry], file: Path, path: str, text: str) -> Iterator[str]:
    """Yield pages whose numbers or workloads are not those of their last judgement.

    The numbers of a page are those of its stored table, or else the cells of its text.
    """
    name = text.partition("\n")[0].removeprefix("# ").strip()
    judgements = judgements_of(entries, name) if path.startswith("results/") else []
    stored = PageTable.read(file.parent, name) if judgements else None
    cells = [cell.strip() for line in text.split("\n") for cell in line.split("|")]
    numbers = Counter(ledger.numbers(stored.rows()).split() if stored else cells)
    match = _WORKLOADS.search(text)
    for last in {entry.claim: entry for entry in judgements}.values():
        if missing := Counter(last.pages[name].split()) - numbers:
            yield (
                f"{path}: {', '.join(missing)} of {last.claim}, {last.judged}, not there: "
                f"numbers that differ are another judgement, on fresh seeds"
            )
        for trace, key in _WORKLOAD.findall(match[1]) if match else ():
            recorded = last.workload.get(trace, "")
            if recorded.startswith("sources"):
                continue  # an entry from git: only its numbers can be compared
            if key not in (word[:SHORT] for word in recorded.split()):
                yield f"{path}: {trace} is {key} here, and {recorded or 'absent'} in {last.claim}"


def _says_once(quoted: str) -> bool:
    has_once = _ONCE.search(quoted) is not None
    return has_once and (_JUDGED.search(quoted) or _READ_ONCE.search(quoted)) is not None


def _claims(entries: Sequence[Entry], path: str, text: str, *, also_all: bool = False) -> list[str]:
    """Claims that a text names; with `also_all` those of its page, if it names none."""
    claims = list(dict.fromkeys(entry.claim for entry in entries))
    pages = {claim: {p for e in entries if e.claim == claim for p in e.pages} for claim in claims}
    named = [
        claim
        for claim in claims
        if any(
            re.search(rf"\b{name.replace('/', '[/-]')}\b", text) for name in (claim, *pages[claim])
        )
    ]
    if named or not also_all:
        return named
    stem = Path(path).stem
    rules = {entry.claim for entry in entries if entry.rule and entry.rule.file == path}
    own = {claim for claim in claims if stem in {page.replace("/", "-") for page in pages[claim]}}
    system = {claim for claim in claims if claim.partition("/")[0] == stem.partition("_")[0]}
    return [claim for claim in claims if claim in (rules | own or system)]
