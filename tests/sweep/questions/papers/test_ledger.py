"""Ledger of judgements: what it refuses, and the one in the repository."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sim.base.errors import InputError
from sweep.grid.options import Options
from sweep.questions.papers import ledger
from sweep.questions.papers.judgement import JudgedExperiment
from sweep.questions.papers.ledger import Entry, Rule
from tests.sweep.questions.papers import ledger_checks
from tests.sweep.small import Command

ROOT = Path(__file__).parents[4]
LEDGER = ROOT / "results" / ledger.NAME
RULE = "# 13\n\n**The rule.** The median\nis at least 2.\n\n**Judged.** It is.\n"
PAGE = """# mine/judged

| figure | what | ours | wanted | met |
| --- | --- | ---: | --- | --- |
| Fig. 1 | a | 2.500 | ≥ 2 | yes |
| | b | 1,200 | | |

Workloads: `mine` 0123456789ab.
"""
PATH = "results/reproductions/mine-judged.md"


def pages() -> dict[str, str]:
    """Texts of all pages that may speak of judgements."""
    records = ("docs/decisions/*.md", "policies/*/decisions/*.md")
    globs = ("results/reproductions/*.md", "docs/*.md", *records, "README.md")
    paths = sorted(path for glob in globs for path in ROOT.glob(glob))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def test_the_ledger_agrees_with_itself_its_rules_and_all_pages() -> None:
    entries = ledger.read(LEDGER)
    assert entries
    assert list(ledger_checks.problems(entries, ROOT, pages())) == []


def test_no_judgement_is_on_seeds_of_development_of_its_claim() -> None:
    assert len(ledger.read_development(LEDGER)) > 10
    assert list(ledger_checks.development(LEDGER, ROOT)) == []


def test_every_commit_that_the_ledger_names_is_in_the_history() -> None:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout

    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("this is no repository with its whole history")
    history = git("log", "--format=%H").split()
    entries = ledger.read(LEDGER)
    dated = [entry.judged for entry in entries]
    for rule in filter(None, (entry.rule for entry in entries)):
        dated += [rule.committed, *(change["committed"] for change in rule.amended)]
    commits = {text.split()[1] for text in dated}
    lengths = {len(commit) for commit in commits}
    shortened = {commit[:n] for commit in history for n in lengths}
    assert commits - shortened == set()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rule.md").write_text(RULE)
    return tmp_path


@pytest.fixture
def entry() -> Entry:
    """Build an entry that agrees with `RULE` and `PAGE`."""
    begins, ends = "**The rule.**", "**Judged.**"
    digest = ledger.digest(ledger.passage(RULE, begins, ends))
    rule = Rule("rule.md", digest, "2026-11-26 0a0a0a0a", begins, ends)
    return _with_rule(rule)


def _with_rule(rule: Rule) -> Entry:
    workload = {"mine": "content 0123456789abcdef"}
    seeds, judged = "1-3", "2026-11-27 0b0b0b0b"
    return Entry("mine/judged", rule, seeds, workload, judged, "1 of 1", {"mine/judged": "2.500"})


def complaints(entries: list[Entry], root: Path, **texts: str) -> list[str]:
    paths = {"page": PATH, "docs": "docs" + "/mine.md", "decision": "rule.md"}
    return list(
        ledger_checks.problems(entries, root, {paths[key]: text for key, text in texts.items()})
    )


def test_a_ledger_that_agrees_is_accepted(root: Path, entry: Entry) -> None:
    once = "The policy was judged once, on fresh seeds."
    fresh = replace(entry, claim="mine/other", seeds="4-6", pages={})
    assert complaints([entry, fresh], root, page=f"{PAGE}\n{once}\n", decision=RULE) == []


SAID_ONCE = {
    "page": f"{PAGE}\nThe policy was judged once, on fresh seeds.\n",
    "docs": "# Mine\n\nMany words.\n\nIt was then frozen and judged\nonce ([page](x.md)).\n",
    "decision": f"{RULE}\nRead once, the page `mine/judged` has 2.5.\n",
}


@pytest.mark.parametrize("kind", SAID_ONCE)
def test_a_page_that_says_once_of_two_judgements_is_refused(
    root: Path, entry: Entry, kind: str
) -> None:
    text = SAID_ONCE[kind]
    assert complaints([entry], root, **{kind: text}) == []
    second = replace(entry, seeds="4-6", again="The generator changed.")
    (complaint,) = complaints([entry, second], root, **{kind: text})
    assert complaint.endswith("mine/judged was judged 2 times")
    assert entry.rule is not None
    by_other_rule = replace(second, rule=replace(entry.rule, file="other.md"))
    (root / "other.md").write_text(RULE)
    n_complaints = 0 if kind == "decision" else 1  # a record tells of its own rule
    assert len(complaints([entry, by_other_rule], root, **{kind: text})) == n_complaints


def test_a_page_that_says_once_of_no_entry_is_refused(root: Path, entry: Entry) -> None:
    once = "It was judged once."
    (complaint,) = ledger_checks.problems([entry], root, {"docs/wing.md": once})
    assert complaint == f"docs/wing.md: {once!r}: the ledger has no entry of it"
    for harmless in ("All are judged at once.", "It is read at once.", "A file is parsed once."):
        assert not [*ledger_checks.problems([entry], root, {"docs/wing.md": harmless})]


def test_a_second_judgement_without_a_reason_is_refused(root: Path, entry: Entry) -> None:
    (complaint,) = complaints([entry, replace(entry, seeds="4-6")], root)
    assert "a later judgement gives its reason: again" in complaint
    part = replace(entry, pages={"mine/second": "2.500"})
    assert complaints([entry, part], root) == []
    assert ledger.times([entry, part], "mine/judged") == 1
    later = [replace(e, seeds="4-6", again="A reason.") for e in (entry, part)]
    assert complaints([entry, part, *later], root) == []
    assert ledger.times([entry, part, *later], "mine/judged") == 2
    assert ledger.times([entry, part, replace(entry, pages={})], "mine/judged") == 2


@pytest.mark.parametrize("is_same_claim", [False, True])
def test_seeds_that_were_used_before_are_refused(
    root: Path, entry: Entry, is_same_claim: bool
) -> None:
    later = replace(entry, seeds="3-5", claim="mine/other", pages={})
    if is_same_claim:
        later = replace(entry, seeds="3-5", again="A reason.", workload={"renamed": ""})
    (complaint,) = complaints([entry, later], root)
    assert "seeds 3 were used before" in complaint
    assert complaints([entry, replace(later, seeds="4-5")], root) == []
    assert entry.rule is not None
    excused = replace(later, reused="Nobody noticed.")
    assert len(complaints([entry, excused], root)) == 1
    early, old_rule = "2026-11-22 0c0c0c0c", replace(entry.rule, committed="2026-11-21 0a0a0a0a")
    before = [replace(member, judged=early, rule=old_rule) for member in (entry, excused)]
    assert complaints(before, root) == []


DEVELOPED = """
- {development: tries, claims: [mine/judged], seeds: 3-5, workload: [mine], file: rule.md,
   passage: The median is}
"""


def test_seeds_of_development_judge_nothing(root: Path, entry: Entry) -> None:
    path = root / ledger.NAME
    path.write_text(DEVELOPED)
    assert ledger.read(path) == []
    (tries,) = developments = ledger.read_development(path)
    (complaint,) = ledger.developed_seeds([entry], developments)
    assert "seeds 3 were used for development (tries)" in complaint
    assert list(ledger.developed_seeds([replace(entry, seeds="1-2")], developments)) == []
    other = replace(entry, claim="mine/other")  # the same trace, before that was refused
    assert list(ledger.developed_seeds([other], developments)) == []
    later = replace(other, judged="2026-12-01 0d0d0d0d")
    assert len(list(ledger.developed_seeds([later], developments))) == 1
    elsewhere = replace(later, workload={"other": ""})
    assert list(ledger.developed_seeds([elsewhere], developments)) == []
    assert list(ledger_checks.development(path, root)) == ["tries: mine/judged was never judged"]
    path.write_text(DEVELOPED.replace("median is", "median was"))
    assert "is not there" in next(ledger_checks.development(path, root))
    assert tries.seed_set == {3, 4, 5}


def test_a_rule_that_changed_is_refused(root: Path, entry: Entry) -> None:
    (root / "rule.md").write_text(RULE.replace("median\nis", "median is"))
    assert complaints([entry], root) == []
    (root / "rule.md").write_text(RULE.replace("at least 2", "at least 1"))
    (complaint,) = complaints([entry], root)
    assert "its rule in rule.md has changed since" in complaint
    assert entry.rule is not None
    text = (root / "rule.md").read_text()
    digest = ledger.digest(ledger.passage(text, entry.rule.begins, entry.rule.ends))
    amended = ({"committed": "2026-11-28 0d0d0d0d", "sha256": digest, "why": "It failed."},)
    assert complaints([replace(entry, rule=replace(entry.rule, amended=amended))], root) == []
    late = replace(entry.rule, committed="2026-11-28 0a0a0a0a", amended=amended)
    assert "its rule is of 2026-11-28, after" in complaints([replace(entry, rule=late)], root)[0]
    (root / "rule.md").unlink()
    assert "is gone" in complaints([entry], root)[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2.500", "2.600", "2.500 of mine/judged, 2026-11-27 0b0b0b0b, not there"),
        ("0123456789ab", "ba9876543210", "mine is ba9876543210 here, and content 0123456789abcdef"),
        ("`mine`", "`yours`", "yours is 0123456789ab here, and absent"),
    ],
)
def test_a_page_of_another_workload_is_refused(
    root: Path, entry: Entry, old: str, new: str, message: str
) -> None:
    assert complaints([entry], root, page=PAGE.replace("1,200", "1,300")) == []
    (complaint,) = complaints([entry], root, page=PAGE.replace(old, new))
    assert message in complaint


def test_a_workload_known_by_its_sources_is_compared_by_numbers(root: Path, entry: Entry) -> None:
    from_git = replace(entry, workload={"mine": "sources sim/synth/mine@0123456789ab"})
    assert complaints([from_git], root, page=PAGE) == []
    (complaint,) = complaints([from_git], root, page=PAGE.replace("2.500", "2.600"))
    assert "numbers that differ are another judgement" in complaint


def test_a_page_lists_its_judgements(entry: Entry) -> None:
    assert "not judged" in ledger.page_text([entry], "mine/free", {})
    text = ledger.page_text([entry], "mine/judged", {"mine": "0123456789abcdef"})
    line = "- 2026-11-27, seeds 1-3, by the rule in rule.md, committed on 2026-11-26."
    head = "as `mine/judged` (results/judged.yaml):"
    assert text.split("\n\n") == [f"Judged once {head}", line, "Workloads: `mine` 0123456789ab."]
    second = replace(entry, judged="2026-11-29 0e", again="It changed.", rule=None, pages={})
    text = ledger.page_text([entry, second], "mine/judged", {})
    assert text.splitlines() == [
        f"Judged twice {head}",
        "",
        line,
        "- 2026-11-29, seeds 1-3, by no written rule. It changed.",
    ]


def test_seeds_are_written_as_ranges() -> None:
    assert ledger.format_seeds([3, 1, 2, 7, 7, 9, 10]) == "1-3, 7, 9-10"
    assert list(ledger.parse_seeds("1-3, 7, 9-10")) == [1, 2, 3, 7, 9, 10]
    with pytest.raises(InputError, match="neither a number nor a range"):
        list(ledger.parse_seeds("1 to 3"))


def test_numbers_are_those_of_expected_rows_else_of_the_paper() -> None:
    rows = [{"ours": "1.0", "paper": "1"}, {"ours": "2.0", "met": "no"}, {"ours": "3.0"}]
    assert ledger.numbers(rows) == "2.0"
    assert ledger.numbers([rows[0], rows[2]]) == "1.0"
    assert ledger.numbers([rows[2]]) == "3.0"


def test_an_entry_is_appended_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / ledger.NAME
    assert ledger.read(path) == []
    path.write_text("# The keys of an entry.\n")
    content = {
        "claim": "mine/judged",
        "pages": {"mine/judged": "2.500"},
        "rule": {"file": "rule.md", "sha256": "00", "committed": "2026-11-26 0a0a0a0a"},
        "seeds": "1-3",
        "workload": {"mine": "content 01"},
        "judged": "2026-11-27 0b0b0b0b",
        "outcome": "1 of 1 as expected",
        "again": "",
    }
    ledger.append(path, content)
    ledger.append(path, {**content, "seeds": "4-6", "again": "The generator changed: it drew on."})
    first, second = ledger.read(path)
    assert (first.seeds, second.seeds, second.again[:3]) == ("1-3", "4-6", "The")
    assert first.pages == {"mine/judged": "2.500"}
    assert path.read_text().startswith("# The keys of an entry.\n\n- claim: mine/judged\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {claim: a}", "entry 'a' lacks rule, seeds"),
        ("- {claim: a, seed: 1}", "did you mean 'seeds'"),
        (
            "- {claim: a, rule: null, seeds: 1, workload: {}, judged: 2026-11-27 0a, outcome: b}",
            "has no rule; write one before",
        ),
        (
            "- {development: a, claims: [b], seeds: 1}",
            "development 'a' lacks workload, file, passage",
        ),
        ("- claim: [", "not a ledger of judgements"),
        ("just text", "an entry has the keys claim"),
    ],
)
def test_a_broken_ledger_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / ledger.NAME
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        ledger.read(path) or ledger.read_development(path)


def test_a_passage_that_is_not_there_is_an_error() -> None:
    assert ledger.passage(RULE, "The median", "at least") == "The median is"
    assert ledger.passage(RULE).startswith("# 13 **The rule.**")
    assert ledger.passage(RULE, "It", "**What came out.**") == "It is."  # not written yet
    with pytest.raises(InputError, match="nowhere"):
        ledger.passage(RULE, "nowhere")


def test_every_page_tells_its_judgement_or_that_it_has_none() -> None:
    entries = ledger.read(LEDGER)
    for path, text in pages().items():
        if path.startswith("results/") and not path.endswith("README.md"):
            name = text.partition("\n")[0].removeprefix("# ")
            is_judged = bool(ledger.judgements_of(entries, name))
            assert ("are not judged" in text, "\nJudged " in text) == (not is_judged, is_judged)
    stems = {path.partition(".")[0].rpartition("/")[2] for path in pages()}
    assert {page.replace("/", "-") for entry in entries for page in entry.pages} <= stems


def test_rules_of_judged_experiments_are_there() -> None:
    options = Options.from_folders([])
    judged = [JudgedExperiment.read(name, options) for name in options.names("experiment")]
    experiments = [experiment for experiment in judged if experiment]
    assert len(experiments) > 3
    for experiment in experiments:
        text = (ROOT / experiment.rule_file).read_text(encoding="utf-8")
        assert ledger.passage(text, experiment.begins, experiment.ends)


GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-C")


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, str(folder), *words], check=True, capture_output=True)


@pytest.fixture
def repository(command: Command, tmp_path: Path) -> Path:
    """Write a repository with an experiment that is judged, and its rule."""
    root = tmp_path / "user"
    (root / "experiment").mkdir(parents=True)
    (root / "rule.md").write_text(RULE)
    (root / "experiment" / "mine.yaml").write_text(
        "# Mine.\naxes:\n  policy: [fifo, las]\n  seed: [5, 6]\n"
        f"overrides: [trace=parquet, trace.path={command.trace}]\n"
        "study: {module: own_ledger_study, name: means, source: Beyond all}\n"
        "judged: {claim: mine, rule: rule.md, begins: '**The rule.**', ends: '**Judged.**'}\n"
    )
    (root / "own_ledger_study.py").write_text(
        "from sweep.report.findings import Finding\n\n\n"
        "def means(finished):\n"
        "    for row in finished.cells:\n"
        "        yield Finding('JCT', row['policy'], row['jct_mean_s'] + row['seed'],"
        " at_least=16)\n"
    )
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "a rule")
    return root


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_rule_that_moves_keeps_its_day(repository: Path) -> None:
    def rule() -> Rule:
        options = Options.from_folders([repository])
        judged = JudgedExperiment.read("mine", options)
        assert judged is not None
        return judged.rule()

    first = rule()
    git(repository, "mv", "rule.md", "moved.md")
    change(repository / "experiment" / "mine.yaml", "rule.md", "moved.md")
    git(repository, "commit", "-qam", "move the rule")
    assert (rule().file, rule().committed) == ("moved.md", first.committed)


def test_another_page_of_a_claim_shares_its_seeds_and_the_same_page_does_not(
    repository: Path,
) -> None:
    experiment = repository / "experiment" / "mine.yaml"
    (repository / "experiment" / "part.yaml").write_text(experiment.read_text())
    path = repository / ledger.NAME
    rule = {"file": "rule.md", "sha256": "00", "committed": "2026-11-19 0a0a0a0a"}
    content = {"claim": "mine", "pages": {"mine": "2.5"}, "rule": rule, "seeds": "4-5"}
    day = {"workload": {"parquet": ""}, "judged": "2026-11-20 0a0a0a0a", "outcome": "1 of 1"}
    ledger.append(path, {**content, **day})
    options = Options.from_folders([repository])
    mine, part = (JudgedExperiment.read(name, options) for name in ("mine", "part"))
    assert mine is not None
    assert part is not None
    part.check(path, [5, 6], ["parquet"])
    mine.check(path, [4, 5], ["parquet"])  # made again
    with pytest.raises(InputError, match="seeds 5 were used before"):
        mine.check(path, [5, 6], ["parquet"])
    with pytest.raises(InputError, match="seeds 5 were used before"):
        replace(part, claim="other").check(path, [5, 6], ["parquet"])
    # both are judged once more: the second page is a part of that, too
    ledger.append(path, {**content, **day, "pages": {"part": "2.5"}})
    ledger.append(path, {**content, **day, "seeds": "7-8", "again": "The generator changed."})
    part.check(path, [7, 8], ["parquet"])
    with pytest.raises(InputError, match="seeds 8 were used before"):
        part.check(path, [8, 9], ["parquet"])


@pytest.mark.long
def test_reproduce_enters_a_judgement(command: Command, repository: Path) -> None:
    words = [word for word in command.words(f"--config-dir={repository}") if "trace" not in word]
    path = command.results / ledger.NAME
    rule, experiment = repository / "rule.md", repository / "experiment" / "mine.yaml"

    rule.write_text(RULE.replace("at least 2", "at least 1"))
    ran = command.bare("reproduce", "mine", *words)
    assert (ran.code, path.exists()) == (2, False)
    assert "the rule of mine is not committed as it is" in ran.err
    rule.write_text(f"{RULE}\nMore results.\n")

    ran = command.bare("reproduce", "mine", *words)
    assert ran.code == 0, ran.err
    (entry,) = ledger.read(path)
    assert (entry.claim, entry.seeds, list(entry.workload)) == ("mine", "5-6", ["parquet"])
    assert entry.outcome.startswith("2 of 4 as expected; not JCT, fifo: ")
    page = (command.results / "reproductions" / "mine.md").read_text()
    assert f"Workloads: `parquet` {entry.workload['parquet'].split()[1][:12]}." in page
    assert not [*ledger_checks.problems([entry], repository, {"results/mine.md": page})]

    ran = command.bare("reproduce", "mine", "seed=5", *words)
    assert "not entered into the ledger of judgements, because of seed=5" in ran.err
    assert command.bare("reproduce", "mine", *words).code == 0  # the same numbers
    assert len(ledger.read(path)) == 1

    change(experiment, "axes:", "axes:\n  capacity: [0.5]")
    ran = command.bare("reproduce", "mine", *words)
    assert ran.code == 2
    assert "mine: numbers differ from those judged on" in ran.err
    ran = command.bare("reproduce", "mine", "--again=fewer slots", *words)
    assert "seeds 5-6 were used before, by mine" in ran.err
    assert (command.results / "reproductions" / "mine.md").read_text() == page
    change(experiment, "[5, 6]", "[7, 8]")
    assert command.bare("reproduce", "mine", "--again=fewer slots", *words).code == 0
    assert [entry.again for entry in ledger.read(path)] == ["", "fewer slots"]
    with path.open("a") as file:
        file.write(DEVELOPED.replace("3-5", "8-9").replace("mine/judged", "other"))
    change(experiment, "claim: mine", "claim: other")
    change(experiment, "[7, 8]", "[9, 10]")
    ran = command.bare("reproduce", "mine", *words)
    assert ran.code == 2
    assert "seeds 9 were used for development (tries)" in ran.err
    change(experiment, "[9, 10]", "[8, 9]")
    ran = command.bare("reproduce", "mine", *words)
    assert ran.code == 2
    assert "seeds 8 were used before, by mine" in ran.err


@pytest.mark.parametrize(
    ("judged", "message"),
    [
        ("{claim: a}", "judged: give claim, rule, begins, ends, each a text"),
        ("{claim: a, rule: b, begin: c}", "did you mean 'begins'"),
    ],
)
def test_a_wrong_key_is_an_error(tmp_path: Path, judged: str, message: str) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(f"# Mine.\njudged: {judged}\n")
    with pytest.raises(InputError, match=message):
        JudgedExperiment.read("mine", Options.from_folders([tmp_path]))


def test_without_a_repository_nothing_is_entered(command: Command, repository: Path) -> None:
    shutil.rmtree(repository / ".git")
    words = [word for word in command.words(f"--config-dir={repository}") if "trace" not in word]
    ran = command.bare("reproduce", "mine", *words)
    assert ran.code == 0, ran.err
    assert "because of no git repository" in ran.err
    assert not (command.results / ledger.NAME).exists()
