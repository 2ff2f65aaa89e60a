"""Enter the judgement of an experiment into the ledger (`sweep.papers.ledger`).

An experiment that is judged names its claim and the passage that holds its rule::

    judged:
      claim: dagps/judged
      rule: docs/decisions/0013-what-is-left.md    # from the root of the repository
      begins: "**The rule**"                       # first words of the passage, and those after it
      ends: "**Judged.**"

The rule must be committed before the experiment is run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sim.base.plugins import check_names
from sweep.papers import ledger
from sweep.papers.ledger import Entry, Rule
from sweep.papers.ledger_checks import repeated_claims, repeated_seeds

KEYS = ("claim", "rule", "begins", "ends")


@dataclass(frozen=True)
class Outcome:
    """Result of a judged experiment, as its page has it."""

    page: str
    seeds: Sequence[int]
    workloads: Mapping[str, str]  # digest of the workloads of each trace
    rows: Sequence[Mapping[str, str]]  # of the page's table, by column

    @property
    def numbers(self) -> str:
        """Numbers that are judged."""
        return ledger.numbers(self.rows)

    @property
    def sentence(self) -> str:
        """Count of the expected ranges that are met, and the rows of those that are not."""
        expected = [row for row in self.rows if row.get("met")]
        if not expected:
            return "Nothing was expected; the numbers are those of the page."
        figure, missed = "", []
        for row in self.rows:
            figure = row["figure"] or figure
            if row.get("met") == "no":
                missed.append(f"{figure}, {row['what']}: {row['ours']} ({row['wanted']})")
        n_met = len(expected) - len(missed)
        return f"{n_met} of {len(expected)} as expected{'; not ' if missed else ''}" + "; ".join(
            missed
        )


def check(judged: Any, file: Path) -> dict[str, str]:
    """Validate the key ``judged`` of an experiment; return it as a dict."""
    is_texts = isinstance(judged, Mapping) and all(isinstance(v, str) for v in judged.values())
    if not is_texts or not {"claim", "rule"} <= set(judged):
        raise InputError(f"judged: give {', '.join(KEYS)}, each a text", file=file)
    check_names("key of judged", map(str, judged), KEYS, rule=None)
    return dict(judged)


def rule(judged: Mapping[str, str], root: Path) -> Rule:
    """Find the passage of an experiment's rule, and the commit that it has been the same since.

    Raises InputError if the passage is not there, or not committed as it is.
    """
    begins, ends = judged.get("begins", ""), judged.get("ends", "")
    path = root / judged["rule"]
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the rule can't be read: {error}", file=path) from error
    digest = ledger.digest(ledger.passage(text, begins, ends))
    committed = ""
    for line in _git(root, "log", "--format=%cs %h", "--", judged["rule"]).splitlines():
        before = _git(root, "show", f"{line.split()[1]}:{judged['rule']}")
        try:
            if ledger.digest(ledger.passage(before, begins, ends)) != digest:
                break
        except InputError:
            break
        committed = line
    if not committed:
        raise InputError(
            "the rule is not committed as it is here; commit it before its results are seen",
            file=path,
            rule="a rule before a figure",
        )
    return Rule(judged["rule"], digest, committed, begins, ends)


def check_fresh(
    path: Path, judged: Mapping[str, str], page: str, seeds: Iterable[int], traces: Iterable[str]
) -> None:
    """Refuse an experiment whose seeds were used before, before it is run.

    A page that was judged with the same seeds may be made again: `enter` compares its numbers.
    """
    entries = ledger.read(path)
    listed = ledger.format_seeds(seeds)
    if any(entry.seeds == listed for entry in ledger.judgements_of(entries, page)):
        return
    workload = dict.fromkeys(map(str, traces), "")
    now = Entry(judged["claim"], None, listed, workload, _today(), "", {page: ""}, "new")
    _refuse([*repeated_seeds([*entries, now])], len([*repeated_seeds(entries)]), path)


def enter(
    path: Path, judged: Mapping[str, str], outcome: Outcome, root: Path, again: str = ""
) -> list[Entry]:
    """Append a judgement to the ledger at `path`; return all entries.

    Nothing is appended if the page was judged before with the same numbers. Other numbers are
    another judgement, with `again` as its reason.

    Raises InputError without a reason, or if the seeds were used before.
    """
    entries = ledger.read(path)
    judgements = ledger.judgements_of(entries, outcome.page)
    if judgements and judgements[-1].pages[outcome.page].split() == outcome.numbers.split():
        return entries
    used = rule(judged, root)
    content: dict[str, Any] = {
        "claim": judged["claim"],
        "pages": {outcome.page: outcome.numbers},
        "rule": {
            "file": used.file,
            **{key: value for key in ("begins", "ends") if (value := judged.get(key))},
            "sha256": used.sha256,
            "committed": used.committed,
        },
        "seeds": ledger.format_seeds(outcome.seeds),
        "workload": {trace: f"content {key}" for trace, key in outcome.workloads.items()},
        "judged": f"{_today()} {_git(root, 'rev-parse', '--short=8', 'HEAD').strip()}",
        "outcome": outcome.sentence,
        "again": again,
    }
    new = ledger.entry(content)
    for check_all in (repeated_claims, repeated_seeds):
        _refuse([*check_all([*entries, new])], len([*check_all(entries)]), path)
    ledger.append(path, content)
    return [*entries, new]


def content_digest(digests: Iterable[str]) -> str:
    """Digest of several workloads, by the digests of their contents, in any order."""
    return ledger.digest(" ".join(sorted(set(digests))))


def root_of(file: Path) -> Path:
    """Root of the git repository that a file is in."""
    top = _git(file.resolve().parent, "rev-parse", "--show-toplevel").strip()
    if not top:
        raise InputError("a judged experiment is in a git repository, as its rule is", file=file)
    return Path(top)


def _refuse(complaints: Sequence[str], n_before: int, path: Path) -> None:
    if len(complaints) > n_before:
        raise InputError(complaints[-1], file=path, rule="ledger of judgements")


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _git(folder: Path, *words: str) -> str:
    """Output of a git command; empty if it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
