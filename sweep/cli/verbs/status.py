"""Say how far a sweep is: the latest, or one by id; also while it runs."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sim.base.errors import InputError, unknown
from sweep.cli.command import Command
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal

USAGE = "[SWEEP] [paths.results=DIR]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.add_argument("--all", action="store_true", help="a line for each sweep there is")


def run(command: Command) -> int:
    """Print the status; 1 if cells of it failed."""
    results = command.results()
    names = _names(results)
    if not names:
        raise InputError(f"there is no sweep in {results}; paths.results=DIR names another folder")
    if command.flags.all:
        for name in names:
            print(_status(results, name)[0])
        return 0
    text, n_failed = _status(results, _chosen(command.names, names))
    print(text)
    return 1 if n_failed else 0


def _names(results: Path) -> list[str]:
    """Ids of all sweeps, the latest last."""
    files = (results / "journal").glob("*.jsonl")
    return [file.stem for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)]


def _chosen(words: tuple[str, ...], names: list[str]) -> str:
    if not words:
        return names[-1]
    word = Path(words[0]).name
    found = [name for name in names if name == word] or [n for n in names if n.startswith(word)]
    if len(found) != 1:
        raise InputError(unknown("sweep", words[0], names))
    return found[0]


def _status(results: Path, sweep: str) -> tuple[str, int]:
    journal = Journal(results, sweep)
    events = journal.events()
    begins = [at for at, event in enumerate(events) if event["event"] == "begin"]
    if not begins:
        return f"{sweep}: nothing is known of it", 0
    events = events[begins[-1] :]
    begin = events[0]
    cells = [event for event in events if event["event"] == "cell"]
    failed = [event for event in cells if event.get("status") == "failed"]
    ends = [event for event in events if event["event"] == "end"]
    n_done = len(cells) - len(failed)
    n_cells, n_todo = begin.get("cells", 0), begin.get("todo", 0)
    # a clock that was set back would have it end before it began
    seconds = max(0.0, (ends[-1] if ends else begin)["time"] - begin["time"])
    words = f"{n_done} of {n_todo} cells done, {len(failed)} failed"
    words += f", {n_cells - n_todo} cached before"
    if journal.is_running() and not ends:
        elapsed = max(0.0, time.time() - begin["time"])
        state = f"running (process {begin.get('pid', '?')}) for {elapsed:.0f} s"
        if 0 < len(cells) < n_todo and elapsed:
            left = elapsed / len(cells) * (n_todo - len(cells))
            words += f", about {left:.0f} s left"
    elif ends:
        state = f"over, in {seconds:.0f} s"
        if ends[-1].get("seeds"):
            state += f"; seeds=auto went on to {ends[-1]['seeds']} seeds"
    else:
        state = "interrupted; the same command goes on"
    lines = [f"{sweep}: {state}: {words}"]
    lines += [f"  row {e.get('row')} failed: {e.get('error')}" for e in failed[:10]]
    folder = SweepFolder.of(results, sweep)
    if folder.is_whole():
        lines.append(str(folder.path))
    return "\n".join(lines), len(failed)
