"""The checkout without the room of a system or of a question: `make test-without ROOM=wing`.

Its folder, its tests and its entries are taken away. A test elsewhere that names one of its
plug-ins, or imports it, is skipped with the name as the reason (`tests/conftest.py`); all others
must pass.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "TESTS_WITHOUT"
"""Environment variable with the rooms taken away, and the names of their plug-ins and options."""
SYSTEMS = sorted(room.parent.name for room in (ROOT / "policies").glob("*/README.md"))
QUESTIONS = sorted(room.parent.name for room in (ROOT / "sweep/questions").glob("*/__init__.py"))
LISTS = ("KEYS", "FILES", "REPORT_FILES", "TABLES", "FRAMES")
"""Constants of a question's plug-in with names of what it takes and writes."""
BUILT_ON = {"wserpt": ("dagps", "jockey", "slearn", "wing")}
"""Systems on which another builds."""


def rooms(names: Iterable[str]) -> list[str]:
    """Return the paths of systems and questions, and of the systems that build on them."""
    builders = (system for system, on in BUILT_ON.items() if {*names} & {*on})
    return [*map(room, dict.fromkeys((*names, *builders)))]


def room(name: str) -> str:
    """Return the path of a system or of a question."""
    return f"policies/{name}" if name in SYSTEMS else f"sweep/questions/{name}"


def copy(folder: Path, *parts: str) -> None:
    """Copy the files of the checkout that git knows, below some folders or all."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *parts],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def take_away(checkout: Path, path: str) -> None:
    """Delete a room with its tests, and the entries whose modules lie in it."""
    shutil.rmtree(checkout / path)
    shutil.rmtree(checkout / "tests" / path, ignore_errors=True)  # not each checkout has tests
    file = checkout / "pyproject.toml"
    dotted = re.escape(path.replace("/", "."))
    entries = re.compile(rf'^[\w".-]+ = "{dotted}[."].*\n', re.MULTILINE)
    text, n = entries.subn("", file.read_text())
    assert n
    file.write_text(text)


def names(path: str) -> list[str]:
    """Return the names of a room's plug-ins, of their keys and files, and of its options."""
    dotted = path.replace("/", ".")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    entries = [item for group in groups.values() for item in group.items()]
    own = [item for item in entries if f"{item[1]}.".startswith(f"{dotted}.")]
    owned = {name for name, _ in own}
    for module in {module for _, module in own if module.endswith(".plug_in")}:
        plug_in = importlib.import_module(module)
        owned.update(*(getattr(plug_in, constant, ()) for constant in LISTS))
    options = (file.relative_to(ROOT / path) for file in (ROOT / path / "conf").rglob("*.yaml"))
    owned |= {Path(*option.parts[2:]).with_suffix("").as_posix() for option in options}
    return sorted(owned)


@cache
def absent() -> dict[str, list[str]]:
    """Return the rooms that are not here, and the names of what they bring; {} if all are."""
    taken_away: dict[str, list[str]] = json.loads(os.environ.get(VARIABLE, "{}"))
    return taken_away


def present(expected: Iterable[str]) -> list[str]:
    """Return those of some names that no absent room brings."""
    return [name for name in expected if name not in absent().get("names", ())]


@cache
def _need() -> re.Pattern[str]:
    """Return the pattern of messages on a room that is not here; of nothing if all are."""
    if not absent():
        return re.compile(r"(?!)")
    plug_ins = "|".join(map(re.escape, absent()["names"]))
    paths = "|".join(map(re.escape, absent()["rooms"]))
    modules = paths.replace("/", ".")
    return re.compile(
        rf"(unknown [\w -]+|has no|has no attribute|cannot import name) '({plug_ins})'|"
        rf"(no installed plug-in takes|that have it:) ({plug_ins})\b|"
        rf"No module named '(?:tests[.])?({modules})[\w.]*'|"
        rf"No such file or directory: '[^']*/(({paths})[^']*|{plug_ins})'"
    )


def reason(failure: str) -> str:
    """Return the reason to skip a test that failed as a room is not here; '' if there is none."""
    match = _need().search(failure)
    return f"needs a room that is not here: {match[0]}" if match else ""


def run(checkout: Path, chosen: Sequence[str], *words: str) -> subprocess.CompletedProcess[bytes]:
    """Copy the checkout without rooms, and those that build on them, to a folder; test it there."""
    copy(checkout)
    paths = rooms(chosen)
    for path in paths:
        take_away(checkout, path)
    for git in (("init", "--quiet"), ("add", "--all")):  # some tests list the files of the project
        subprocess.run(["git", *git], cwd=checkout, check=True)
    taken_away = {"rooms": paths, "names": [name for path in paths for name in names(path)]}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    variables = {VARIABLE: json.dumps(taken_away), "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-m", "pytest", "-q", *words]
    return subprocess.run(command, cwd=checkout, env={**inherited, **variables}, check=False)


def main() -> int:
    """Run the tests without a room."""
    parser = argparse.ArgumentParser(prog="python -m tests.without")
    parser.add_argument("names", help=f"of {', '.join((*SYSTEMS, *QUESTIONS))}; comma-separated")
    chosen, words = parser.parse_known_args()[0].names.split(","), sys.argv[2:]
    if unknown := {*chosen} - {*SYSTEMS, *QUESTIONS}:
        parser.error(f"no such room: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="without-") as folder:
        return run(Path(folder) / "checkout", chosen, *words).returncode


if __name__ == "__main__":
    sys.exit(main())
