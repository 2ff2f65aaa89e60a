"""Enter the judgement of an experiment into the ledger (`sweep.questions.papers.ledger`).

An experiment that is judged names its claim and the passage that holds its rule::

    judged:
      claim: dagps/judged
      rule: policies/dagps/decisions/0013-what-is-left.md    # from the root of the repository
      begins: "**The rule**"                       # first words of the passage, and those after it
      ends: "**Judged.**"

The rule must be committed before the experiment is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sim.base.plugins import check_names
from sweep.grid.options import Options
from sweep.questions.papers import ledger
from sweep.questions.papers.ledger import (
    Entry,
    Rule,
    developed_seeds,
    repeated_claims,
    repeated_seeds,
)
from sweep.questions.papers.pages import PageTable
from sweep.store.provenance import git_output

KEYS = ("claim", "rule", "begins", "ends")


@dataclass(frozen=True)
class JudgedExperiment:
    """An experiment that is judged by a rule in its git repository."""

    name: str
    claim: str
    rule_file: str
    begins: str
    ends: str
    root: Path | None  # of the repository; None without one, as in an installed package

    @classmethod
    def read(cls, name: str, options: Options) -> JudgedExperiment | None:
        """Read the key ``judged`` of an experiment; None without one."""
        judged = options.plain("experiment", name).get("judged")
        if judged is None:
            return None
        file = options.files["experiment"][name]
        is_texts = isinstance(judged, Mapping) and all(isinstance(v, str) for v in judged.values())
        if not is_texts or not {"claim", "rule"} <= set(judged):
            raise InputError(f"judged: give {', '.join(KEYS)}, each a text", file=file)
        check_names("key of judged", map(str, judged), KEYS, rule=None)
        top = _git(file.resolve().parent, "rev-parse", "--show-toplevel").strip()
        texts = judged["claim"], judged["rule"], judged.get("begins", ""), judged.get("ends", "")
        return cls(name, *texts, Path(top) if top else None)

    def rule(self) -> Rule:
        """Find the passage of the rule, and the commit since which it has been the same.

        Raises InputError if the passage is not there, or not committed as it is.
        """
        assert self.root is not None, "the caller enters judgements of a repository alone"
        path = self.root / self.rule_file
        try:
            digest = self._digest(path.read_text(encoding="utf-8"))
        except (OSError, InputError) as error:
            raise InputError(
                f"the rule of {self.name} can't be read: {error}", file=path
            ) from error
        committed = ""
        for line, name in self._commits():
            before = _git(self.root, "show", f"{line.split()[1]}:{name}")
            try:
                if self._digest(before) != digest:
                    break
            except InputError:
                break
            committed = line
        if not committed:
            message = f"the rule of {self.name} is not committed as it is; commit it before a run"
            raise InputError(message, file=path, rule="a rule before a figure")
        return Rule(self.rule_file, digest, committed, self.begins, self.ends)

    def check(self, path: Path, seeds: Iterable[int], traces: Iterable[str]) -> None:
        """Refuse to run the experiment without a committed rule, or on seeds used before.

        A page that was judged on the same seeds may be made again: `enter` compares its numbers.
        Another page of a claim that was judged is a part of that judgement.
        """
        rule, entries, listed = self.rule(), ledger.read(path), ledger.format_seeds(seeds)
        if any(other.seeds == listed for other in ledger.judgements_of(entries, self.name)):
            return
        workload = dict.fromkeys(map(str, traces), "")
        pages = {self.name: ""}
        was_judged = any(e.claim == self.claim and self.name in e.pages for e in entries)
        parts = [e for e in entries if e.claim == self.claim and e.seeds == listed]
        again = parts[-1].again if parts else "new" if was_judged else ""
        now = Entry(self.claim, rule, listed, workload, _today(), "", pages, again=again)
        _refuse(repeated_seeds(entries), repeated_seeds([*entries, now]), path)
        _refuse((), developed_seeds([now], ledger.read_development(path)), path)

    def enter(self, path: Path, stored: PageTable, seeds: Iterable[int], again: str = "") -> None:
        """Append the judgement of a page to the ledger at `path`.

        Nothing is appended if it was judged before and has the numbers of then. Other numbers are
        another judgement, with `again` as its reason.

        Raises InputError without a reason, or if the seeds were used before.
        """
        rows = stored.rows()
        numbers = ledger.numbers(rows)
        entries = ledger.read(path)
        before = [e for e in ledger.judgements_of(entries, self.name) if e.claim == self.claim]
        if before and not Counter(before[-1].pages[self.name].split()) - Counter(numbers.split()):
            return
        rule = self.rule()
        assert self.root is not None
        passage = {"begins": rule.begins, "ends": rule.ends}
        content: dict[str, Any] = {
            "claim": self.claim,
            "pages": {self.name: numbers},
            "rule": {
                "file": rule.file,
                **{key: words for key, words in passage.items() if words},
                "sha256": rule.sha256,
                "committed": rule.committed,
            },
            "seeds": ledger.format_seeds(seeds),
            "workload": {trace: f"content {key}" for trace, key in stored.workloads.items()},
            "judged": f"{_today()} {_git(self.root, 'rev-parse', '--short=8', 'HEAD').strip()}",
            "outcome": _outcome(rows),
            "again": again,
        }
        now = [*entries, ledger.entry(content)]
        if before and not again:
            message = (
                f"{self.name}: numbers differ from those judged on {before[-1].date}: another "
                "judgement, on fresh seeds, with --again REASON"
            )
            raise InputError(message, file=path, rule="ledger of judgements")
        _refuse(repeated_claims(entries), repeated_claims(now), path)
        _refuse(repeated_seeds(entries), repeated_seeds(now), path)
        _refuse((), developed_seeds(now[-1:], ledger.read_development(path)), path)
        ledger.append(path, content)

    def _commits(self) -> Iterator[tuple[str, str]]:
        """Yield day and hash of the rule's commits, the latest first, each with its name then."""
        assert self.root is not None, "as in `rule`"
        form = ("--follow", "--no-merges", "--name-only", "--format=%cs %h")
        log = _git(self.root, "-c", "core.quotepath=off", "log", *form, "--", self.rule_file)
        lines = filter(None, log.splitlines())
        return zip(lines, lines, strict=True)

    def _digest(self, text: str) -> str:
        return ledger.digest(ledger.passage(text, self.begins, self.ends))


def _outcome(rows: Sequence[Mapping[str, str]]) -> str:
    """Count the expected ranges that are met, and list the rows of those that are not."""
    expected = [row for row in rows if row.get("met")]
    if not expected:
        return "No range was expected."
    missed = [
        f"{row['figure']}, {row['what']}: {row['ours']} ({row['wanted']})"
        for row in expected
        if row["met"] == "no"
    ]
    count = f"{len(expected) - len(missed)} of {len(expected)} as expected"
    return f"{count}; not {'; '.join(missed)}." if missed else f"{count}."


def _refuse(before: Iterable[str], now: Iterable[str], path: Path) -> None:
    """Raise the first complaint that a ledger did not have before."""
    known = set(before)
    for complaint in now:
        if complaint not in known:
            raise InputError(complaint, file=path, rule="ledger of judgements")


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _git(folder: Path, *words: str) -> str:
    """Output of a git command; empty if it fails."""
    return git_output(folder, *words) or ""
