"""Hostile archives: nothing runs, nothing is written or fetched, no lie is accepted.

All of them are tried in the long lane (`make test-long`); every few in the others.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.damages import damages
from tests.sweep.questions.archive import attacks, sandbox
from tests.sweep.questions.archive import entries as archives
from tests.sweep.questions.archive.changes import LISTENER, Attack
from tests.sweep.questions.archive.entries import CELLS, Entries
from tests.sweep.questions.archive.questions import QUESTIONS
from tests.sweep.questions.archive.sandbox import Listener, Sandbox, Verified

EVERY = 25
"""One attack of so many is tried in the normal lanes."""
MAX_SECONDS = 20


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory, good: Entries) -> dict[str, Entries]:
    """Good archives: a grid, searches, what-ifs, a policy of one's own."""
    own = sandbox.export(tmp_path_factory.mktemp("own"), "policy=fifo,lent", own=True)
    return {
        "grid": good,
        "own": own,
        **{
            name: sandbox.export(tmp_path_factory.mktemp("base"), *QUESTIONS[name])
            for name in ("a target", "a search", "what if")
        },
    }


@pytest.fixture(scope="module")
def tried(
    bases: dict[str, Entries], tmp_path_factory: pytest.TempPathFactory, listener: Listener
) -> Sandbox:
    folder = tmp_path_factory.mktemp("attacks") / "box"
    folder.mkdir()
    box = Sandbox(folder, listener)
    (folder / "planted.py").write_text("open('executed', 'w')\n")
    return box


def fault(attack: Attack, verified: Verified, entries: Entries, good: Entries) -> str:
    """Describe how `verify` fails to withstand an attack; empty if it does."""
    if not verified.is_harmless:
        return "it reads, fetches, writes or ends in a traceback"
    if verified.seconds > MAX_SECONDS:
        return "it takes long"
    if verified.code == 2 and verified.err.count("error: ") != 1:
        return "it is not refused in one sentence"
    if verified.code not in (0, 1, 2):
        return "its exit code is none of verify's"
    if verified.code != 0:
        return ""
    if attack.unread == CELLS:
        old, now = (repr(archives.cells(content).to_pylist()) for content in (good, entries))
        return "" if old == now else "a lie is accepted"
    return "" if attack.unread and attack.unread in verified.out else "a lie is accepted"


def attempt(box: Sandbox, attack: Attack, bases: dict[str, Entries]) -> str:
    entries = dict(bases[attack.base])
    attack.change(entries)
    host = box.listener.address.encode()
    entries = {name: content.replace(LISTENER.encode(), host) for name, content in entries.items()}
    if entries == bases[attack.base] and attack.kind != "code":
        return ""  # the change finds nothing to change in it
    verified = box.attack(entries, "--cells=99", "--seed=1")
    why = fault(attack, verified, entries, bases[attack.base])
    return f"{attack.kind}: {attack.name}: {why}: {verified}" if why else ""


@pytest.mark.long
def test_every_few(tried: Sandbox, bases: dict[str, Entries]) -> None:
    chosen = [*attacks.all_attacks(bases)][::EVERY]
    assert len(chosen) >= 8
    with sandbox.fake_simulator():
        faults = [attempt(tried, attack, bases) for attack in chosen]
    assert [why for why in faults if why] == []


@pytest.mark.long
def test_all(tried: Sandbox, bases: dict[str, Entries]) -> None:
    every = [*attacks.all_attacks(bases)]
    assert len(every) >= 200
    assert len({(attack.kind, attack.name, attack.base) for attack in every}) == len(every)
    with sandbox.fake_simulator():
        faults = [attempt(tried, attack, bases) for attack in every]
    assert [why for why in faults if why] == []


@pytest.mark.long
def test_damaged_bytes_of_the_file(
    tried: Sandbox, bases: dict[str, Entries], tmp_path: Path
) -> None:
    whole = archives.write(tmp_path / "whole.zip", bases["grid"]).read_bytes()
    faults = []
    with sandbox.fake_simulator():
        for content in damages(whole, 60, seed=54):
            file = tmp_path / "damaged.zip"
            file.write_bytes(content)
            verified = tried.verify(file, "--cells=99")
            if not verified.is_harmless or (verified.code == 0 and not _is_whole(file, bases)):
                faults.append(verified)
    assert faults == []


def _is_whole(file: Path, bases: dict[str, Entries]) -> bool:
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    sealed = dict(bases["grid"])
    archives.seal(sealed)
    return content == sealed


def test_a_sample_that_a_liar_cannot_know(tmp_path: Path, box: Sandbox) -> None:
    with sandbox.fake_simulator():
        entries = sandbox.export(tmp_path / "many", "policy=fifo,las", "seed=range(0,30)")
        rows = archives.cells(entries)["jct_mean_s"].to_pylist()
        honest = {int(line.split()[1][:-1]) for line in chosen(box, entries, "--seed=0")}
        lies = [value if row in honest else value + 1 for row, value in enumerate(rows)]
        archives.set_column(entries, "jct_mean_s", lies)
        assert all(": same" in line for line in chosen(box, entries, "--seed=0"))
        verified = box.attack(entries)
    assert verified.code == 1
    assert "55 of 60 rows were not checked" in verified.out
    assert "--seed " in verified.out


def chosen(box: Sandbox, entries: Entries, *words: str) -> list[str]:
    """Lines of the rows that were run."""
    lines = box.attack(entries, *words).out.splitlines()
    return [line for line in lines if line.startswith("row ")]
