"""Verbs ``status``, ``list`` and ``tag``: progress; all sweeps and verdicts; a reader's words."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sim.base.errors import InputError
from sim.base.text import table_lines
from sweep.cli.command import Command
from sweep.execution import notes
from sweep.grid import remote_results
from sweep.store import storage, sweep_list, tags
from sweep.store.cache import Cache
from sweep.store.folder import SweepFolder
from sweep.store.journal import Event, Journal
from sweep.store.stale import stale_cells, stale_words
from sweep.store.sweep_summaries import (
    RUNNING,
    SweepSummary,
    duration_text,
    size_text,
    summarize,
    time_text,
)


def status_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [SWEEP] [paths.results=DIR] [flags]"
    parser.add_argument("--all", action="store_true", help="one line for each sweep")


def status(command: Command) -> int:
    """Show the progress of a sweep: the latest, or one by id or name; also while it runs."""
    results = command.results()
    if command.flags.all:
        for entry in sweep_list.sweeps(results):
            print(_status(results, entry.sweep)[0])
        return 0
    word = command.sweep()
    entry = sweep_list.find(results, None if word is None else Path(word).name)
    text, n_failed = _status(results, entry.sweep)
    print(text)
    return 1 if n_failed else 0


def _status(results: Path, sweep: str) -> tuple[str, int]:
    journal = Journal(results, sweep)
    events = journal.last_attempt()  # which may be of very many cells
    begin = next(events, None)
    if begin is None:
        return f"{sweep}: its journal is empty", 0
    n_came, n_failed, failed, nodes = 0, 0, list[Event](), dict[str, list[float]]()
    milestones = []
    for event in events:
        if event["event"] != "cell":
            milestones.append(event)
            continue
        n_came += 1
        if event.get("status") == "failed":
            n_failed += 1
            failed += [event][: MAX_FAILURES - len(failed)]
        if "node" in event:
            began_s = event["time"] - event["seconds"]  # of its first cell, by the driver's clock
            node = nodes.setdefault(str(event["node"]), [began_s, 0.0, 0, 0.0])
            node[1:] = event["time"], node[2] + 1, node[3] + event["seconds"]
    ends = [event for event in milestones if event["event"] == "end"]
    n_done = n_came - n_failed
    n_cells, n_todo = begin.get("cells", 0), begin.get("todo", 0)
    # a clock that was set back would have it end before it began
    seconds = max(0.0, (ends[-1] if ends else begin)["time"] - begin["time"])
    words = f"{n_done} of {n_todo} cells done, {n_failed} failed"
    words += f", {n_cells - n_todo} cached before"
    if journal.is_running() and not ends:
        elapsed = max(0.0, time.time() - begin["time"])
        state = f"running (process {begin.get('pid', '?')}) for {elapsed:.0f} s"
        holder = journal.lease().holder()
        left_s = None if holder is None else holder.status.get("left_s")
        if 0 < n_came < n_todo and isinstance(left_s, int | float):
            words += f", about {duration_text(left_s)} left"
    elif ends:
        state = f"finished in {seconds:.0f} s"
    else:
        state = "stopped; the same command resumes it"
    lines = [f"{sweep}: {state}: {words}"]
    lines += _node_lines(nodes)
    lines += [f"  {e['text']}" for e in milestones if e["event"] == "said" and "text" in e][-10:]
    lines += [f"  row {e.get('row')} failed: {e.get('error')}" for e in failed]
    folder = SweepFolder.for_sweep(results, sweep)
    if folder.is_whole():
        stale = stale_words(stale_cells(folder, Cache(results)))
        lines += [f"  {stale}: the same command runs them again"] if stale else []
        lines.append(remote_results.display_path(folder.path))
    return "\n".join(lines), n_failed


def _node_lines(nodes: Mapping[str, Sequence[float]]) -> list[str]:
    """Return a line for each node, if there are several: cells that it has run, and their rate."""
    lines = []
    for name, (began_s, ended_s, n, seconds) in sorted(nodes.items()) if len(nodes) > 1 else ():
        rate = f", {n / (ended_s - began_s):.2g} a second" if ended_s > began_s else ""
        lines.append(f"  {name}: {notes.count(int(n), 'cells')}{rate}, {seconds / n:.3g} s each")
    return lines


MAX_SENTENCES, MAX_FAILURES = 3, 10


def list_sweeps_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.usage = f"{parser.prog} [paths.results=DIR] [flags]"


def list_sweeps(command: Command) -> int:
    """List all sweeps, newest first: last run, number of cells, size, state, tags, verdict."""
    results = command.results()
    if command.names:
        raise InputError(f"list takes no {command.names[0]!r}: it lists all sweeps")
    summaries = summarize(results)
    if not summaries:
        raise InputError(f"there is no sweep in {results}; paths.results=DIR names another folder")
    rows = [
        [
            *(entry.sweep, time_text(entry.time_s), str(entry.n_cells)),
            *(size_text(entry.n_bytes), _state(entry), " ".join(entry.tags)),
        ]
        for entry in summaries
    ]
    header, *lines = table_lines(["sweep", "last run", "cells", "size", "state", "tags"], rows)
    print(header)
    for entry, line in zip(summaries, lines, strict=True):
        print(line)
        for sentence in entry.sentences[:MAX_SENTENCES]:
            print(f"    {sentence}")
        if len(entry.sentences) > MAX_SENTENCES:
            print(f"    and {len(entry.sentences) - MAX_SENTENCES} more in its report")
    cached = sum(item.n_bytes for item in storage.for_results(results).list("cache/").values())
    print(f"cells and traces in the cache: {size_text(cached)} (`gc` lists what no sweep needs)")
    return 0


def _state(entry: SweepSummary) -> str:
    return f"{RUNNING}: {entry.state}" if entry.phase == RUNNING else entry.state


def tag_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} SWEEP WORD [WORD ...] [--remove] [paths.results=DIR]"
    parser.add_argument("--remove", action="store_true", help="remove these tags")
    parser.epilog = "`list` shows tags, and the index of `python -m sweep ui` filters by them."


def tag(command: Command) -> int:
    """Tag a sweep with words of your own, kept in its folder; without a word, print its tags."""
    results = command.results()
    if not command.names:
        raise InputError("name the sweep and the tags: tag SWEEP WORD", rule="grammar")
    name, *words = command.names
    sweep = sweep_list.find(results, name).sweep
    added, removed = ([], words) if command.flags.remove else (words, [])
    left = tags.change(results, sweep, added, removed)
    print(f"{sweep}: {' '.join(left) or 'no tags'}")
    return 0
