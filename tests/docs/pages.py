"""What a page of the documentation shows, done as it stands there.

A fenced block that follows a line which ends in its name, ```mine/edf.py`:``, is a file. Blocks of
``sh`` and ``python`` are run, one after the other, in one folder. A block of ``text`` is what the
block before it prints, but for lines of progress, which come by the clock, or where a kernel is not
compiled yet; ``...`` there is anything. ``<!-- not run: why -->`` before a block leaves it out,
``<!-- until stopped -->`` ends it once it has printed something, ``<!-- goes on -->`` before a
block of ``python`` gives it what that before it has made: they are one run, as in a notebook. Any
other block is an error: nothing on a page is left unchecked without saying so.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(
    r"(?:`(?P<file>[\w./-]+)`:\n\n)?(?:<!-- (?P<note>[^\n]*) -->\n+)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_PROGRESS = re.compile(
    r"^(?:\d+ of \d+ (?:cells done|runs logged)|sim: compiling ).*\n", re.MULTILINE
)
_SECONDS = 900  # on a machine with other work
_NEXT = "-- the next block --"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the file that it is, the note before it."""

    line: int
    language: str
    text: str
    file: str | None
    note: str


def blocks(page: str) -> Iterator[Block]:
    """Find the blocks of a page of ``docs``."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text.count("```") % 2 == 0, page
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        yield Block(line, found["language"], found["text"], found["file"], found["note"] or "")


def do(page: str, folder: Path, packages: Path, port: int | None = None) -> list[str]:
    """Do in `folder`, with the packages that lie in `packages`, what a page shows.

    What it starts has ended when this returns or raises. The page's port 5077 becomes `port`.

    Returns
    -------
    list of str
        What was done: ``file``, ``run``, ``stopped``, ``compared`` and ``left out``.
    """
    done: list[str] = []
    printed = ""
    later: list[str] = []
    shown = list(blocks(page))
    with _group() as group:
        for at, block in enumerate(shown):
            where = f"docs/{page}:{block.line}"
            text = block.text if port is None else block.text.replace("5077", str(port))
            if block.note.startswith("not run: "):
                done.append("left out")
            elif block.file is not None:
                path = folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                done.append("file")
            elif block.note == "goes on":
                assert later, f"{where}: goes on from nothing"
                printed = later.pop(0)
                done.append("run")
            elif block.language in ("sh", "python"):
                text = f"\nprint({_NEXT!r}, flush=True)\n".join([text, *_going_on(shown[at + 1 :])])
                started = _start(block.language, text, folder, packages, group)
                stops = block.note == "until stopped"
                words = _first_words(started) if stops else _all_words(started, where, text)
                printed, *later = words.split(f"{_NEXT}\n")
                done.append("stopped" if stops else "run")
            else:
                assert block.language == "text", f"{where}: neither run, nor shown, nor left out"
                check = OutputChecker().check_output(text, printed, ELLIPSIS | NORMALIZE_WHITESPACE)
                assert check, f"{where}: it shows\n{text}\nbut what was run printed\n{printed}"
                done.append("compared")
    return done


def _going_on(after: list[Block]) -> Iterator[str]:
    """Give the text of the blocks that go on from the one before, up to one that is run anew."""
    for block in after:
        if block.note == "goes on":
            yield block.text
        elif block.language in ("sh", "python") or block.file is not None:
            return


@contextlib.contextmanager
def _group() -> Iterator[int]:
    """Give a group of processes, all of which are ended at the end."""
    holder = subprocess.Popen(["sleep", "infinity"], process_group=0)
    try:
        yield holder.pid
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()


def _start(
    language: str, text: str, folder: Path, packages: Path, group: int
) -> subprocess.Popen[bytes]:
    shell = ["bash", "-euo", "pipefail", "-c", text]
    return subprocess.Popen(
        shell if language == "sh" else [sys.executable, "-c", text],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(packages),
            "COLUMNS": "100",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=group,
    )


def _all_words(started: subprocess.Popen[bytes], where: str, text: str) -> str:
    printed = started.communicate(timeout=_SECONDS)[0].decode()
    assert started.returncode == 0, f"{where}: failed:\n{text}\n{printed}"
    return _PROGRESS.sub("", printed)


def _first_words(started: subprocess.Popen[bytes]) -> str:
    with started:
        assert started.stdout is not None
        first: bytes = os.read(started.stdout.fileno(), 65536)
        started.kill()
    return first.decode()
