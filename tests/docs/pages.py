"""Run the fenced blocks of a documentation page, and compare their output.

A fenced block after a line that ends in its name, ```mine/edf.py`:``, is a file. Blocks of ``sh``
and ``python`` are run, one after the other, in one folder. A block of ``text`` is the output of the
block before it, without lines of progress, which depend on the clock and on compiled kernels;
``...`` matches anything. ``<!-- not run: why -->`` before a block leaves it out, ``<!-- until
stopped -->`` ends it once it has printed something, ``<!-- goes on -->`` before a block of
``python`` continues the run of the block before it, as in a notebook. Any other block is an error:
nothing on a page is left unchecked without saying so.
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
_TIMEOUT_S = 900  # on a machine with other work
_NEXT = "-- the next block --"


@dataclass(frozen=True)
class Block:
    """A fenced block: line, language, text, file name and the note before it."""

    line: int
    language: str
    text: str
    file: str | None
    note: str


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page of ``docs``."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text.count("```") % 2 == 0, page
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        yield Block(line, match["language"], match["text"], match["file"], match["note"] or "")


def run_page(page: str, folder: Path, packages: Path, port: int | None = None) -> list[str]:
    """Run a page's blocks in `folder`, with the packages in `packages`.

    Processes that it starts have ended when this returns or raises. The page's port 5077 becomes
    `port`.

    Returns
    -------
    list of str
        Action on each block: ``file``, ``run``, ``stopped``, ``compared`` and ``left out``.
    """
    actions: list[str] = []
    output = ""
    next_outputs: list[str] = []
    page_blocks = list(blocks(page))
    with _group() as group:
        for index, block in enumerate(page_blocks):
            where = f"docs/{page}:{block.line}"
            text = block.text if port is None else block.text.replace("5077", str(port))
            if block.note.startswith("not run: "):
                actions.append("left out")
            elif block.file is not None:
                path = folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                actions.append("file")
            elif block.note == "goes on":
                assert next_outputs, f"{where}: continues no block"
                output = next_outputs.pop(0)
                actions.append("run")
            elif block.language in ("sh", "python"):
                next_texts = _continuations(page_blocks[index + 1 :])
                text = f"\nprint({_NEXT!r}, flush=True)\n".join([text, *next_texts])
                process = _start(block.language, text, folder, packages, group)
                stops = block.note == "until stopped"
                outputs = _first_output(process) if stops else _full_output(process, where, text)
                output, *next_outputs = outputs.split(f"{_NEXT}\n")
                actions.append("stopped" if stops else "run")
            else:
                assert block.language == "text", f"{where}: neither run, nor shown, nor left out"
                flags = ELLIPSIS | NORMALIZE_WHITESPACE
                same = OutputChecker().check_output(text, output, flags)
                assert same, f"{where}: the page shows\n{text}\nbut the run printed\n{output}"
                actions.append("compared")
    return actions


def _continuations(next_blocks: list[Block]) -> Iterator[str]:
    """Yield the text of the blocks that continue a run, up to the next run."""
    for block in next_blocks:
        if block.note == "goes on":
            yield block.text
        elif block.language in ("sh", "python") or block.file is not None:
            return


@contextlib.contextmanager
def _group() -> Iterator[int]:
    """Make a process group, and kill all of its processes at the end."""
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


def _full_output(process: subprocess.Popen[bytes], where: str, text: str) -> str:
    output = process.communicate(timeout=_TIMEOUT_S)[0].decode()
    assert process.returncode == 0, f"{where}: failed:\n{text}\n{output}"
    return _PROGRESS.sub("", output)


def _first_output(process: subprocess.Popen[bytes]) -> str:
    with process:
        assert process.stdout is not None
        output: bytes = os.read(process.stdout.fileno(), 65536)
        process.kill()
    return output.decode()
