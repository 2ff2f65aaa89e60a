"""Verbs about all sweeps there are: how far one is, and the list of them with what each found."""

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
from sweep.store import sweep_list
from sweep.store.folder import SweepFolder
from sweep.store.journal import Event, Journal
from sweep.store.sweep_summaries import summarize


def status_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [SWEEP] [paths.results=DIR] [flags]"
    parser.add_argument("--all", action="store_true", help="a line for each sweep there is")


def status(command: Command) -> int:
    """Say how far a sweep is: the latest, or one by id or name; also while it runs."""
    results = command.results()
    if command.flags.all:
        for each in sweep_list.sweeps(results):
            print(_status(results, each.sweep)[0])
        return 0
    word = command.sweep()
    found = sweep_list.find(results, None if word is None else Path(word).name)
    text, n_failed = _status(results, found.sweep)
    print(text)
    return 1 if n_failed else 0


def _status(results: Path, sweep: str) -> tuple[str, int]:
    journal = Journal(results, sweep)
    events = journal.last_attempt()  # which may be of very many cells
    begin = next(events, None)
    if begin is None:
        return f"{sweep}: nothing is known of it", 0
    n_came, n_failed, failed, nodes = 0, 0, list[Event](), dict[str, list[float]]()
    others = []
    for event in events:
        if event["event"] != "cell":
            others.append(event)
            continue
        n_came += 1
        if event.get("status") == "failed":
            n_failed += 1
            failed += [event][: MAX_FAILURES - len(failed)]
        if "node" in event:
            began_s = event["time"] - event["seconds"]  # of its first cell, by the driver's clock
            its = nodes.setdefault(str(event["node"]), [began_s, 0.0, 0, 0.0])
            its[1:] = event["time"], its[2] + 1, its[3] + event["seconds"]
    ends = [event for event in others if event["event"] == "end"]
    n_done = n_came - n_failed
    n_cells, n_todo = begin.get("cells", 0), begin.get("todo", 0)
    # a clock that was set back would have it end before it began
    seconds = max(0.0, (ends[-1] if ends else begin)["time"] - begin["time"])
    words = f"{n_done} of {n_todo} cells done, {n_failed} failed"
    words += f", {n_cells - n_todo} cached before"
    if journal.is_running() and not ends:
        elapsed = max(0.0, time.time() - begin["time"])
        state = f"running (process {begin.get('pid', '?')}) for {elapsed:.0f} s"
        if 0 < n_came < n_todo and elapsed:
            left = elapsed / n_came * (n_todo - n_came)
            words += f", about {left:.0f} s left"
    elif ends:
        state = f"over, in {seconds:.0f} s"
    else:
        state = "interrupted; the same command goes on"
    lines = [f"{sweep}: {state}: {words}"]
    lines += _of_nodes(nodes)
    lines += [f"  {e['text']}" for e in others if e["event"] == "said" and "text" in e][-10:]
    lines += [f"  row {e.get('row')} failed: {e.get('error')}" for e in failed]
    folder = SweepFolder.for_sweep(results, sweep)
    if folder.is_whole():
        lines.append(remote_results.display_path(folder.path))
    return "\n".join(lines), n_failed


def _of_nodes(nodes: Mapping[str, Sequence[float]]) -> list[str]:
    """Give each node a line, if there are several: how many cells it has run, and how fast."""
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
    """List all sweeps, newest first: when, how many cells, what came out."""
    results = command.results()
    if command.names:
        raise InputError(f"list takes no {command.names[0]!r}: it lists all sweeps there are")
    found = summarize(results)
    if not found:
        raise InputError(f"there is no sweep in {results}; paths.results=DIR names another folder")
    rows = [[each.sweep, each.begun, str(each.n_cells), each.state] for each in found]
    header, *lines = table_lines(["sweep", "begun", "cells", ""], rows)
    print(header)
    for each, line in zip(found, lines, strict=True):
        print(line)
        for sentence in each.sentences[:MAX_SENTENCES]:
            print(f"    {sentence}")
        if len(each.sentences) > MAX_SENTENCES:
            print(f"    and {len(each.sentences) - MAX_SENTENCES} more in its report")
    return 0
