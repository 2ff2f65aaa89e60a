"""Extension of the verb ``show``: a cell run again and drawn, or written for Perfetto."""

from __future__ import annotations

import argparse
from pathlib import Path

from sim.base.errors import InputError
from sweep.cli.command import Command
from sweep.cli.show import chosen_cell, find_row
from sweep.questions.timeline.plug_in import draw, write_perfetto
from sweep.store.folder import SweepFolder

TIMELINES = "timelines"


def show_timeline_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--timeline",
        action="store_true",
        help="run the cell again and draw it: who ran where and when, what waited, and why",
    )
    parser.add_argument(
        "--beside", metavar="CELL", help="with --timeline: a second cell below, moving in step"
    )
    parser.add_argument(
        "--perfetto",
        metavar="FILE",
        help="run the cell again and write it in Chrome's trace format (.json or .json.gz)",
    )
    parser.epilog = (
        f"{parser.epilog} --timeline takes up to a million tasks, --perfetto (for ui.perfetto.dev) "
        "any number."
    )


def show_timeline(command: Command) -> int | None:
    """Write a cell's timeline as a page, or for Perfetto; print where."""
    flags = command.flags
    if not flags.timeline and flags.beside is None and flags.perfetto is None:
        return None
    folder, cell = chosen_cell(command)
    if cell is None:
        raise InputError("name the cell to draw, e.g. show 0 --timeline", rule="grammar")
    if flags.beside is not None and not flags.timeline:
        raise InputError("--beside goes with --timeline", rule="grammar")
    _draw(folder, [word for word in (cell, flags.beside) if word is not None], flags)
    return 0


def _draw(folder: SweepFolder, cells: list[str], flags: argparse.Namespace) -> None:
    numbers = [find_row(folder, word) for word in cells]
    from sweep.driver.captured_run import capture_cell  # brings numba

    runs = [capture_cell(folder, folder.row(number)) for number in numbers]
    if flags.perfetto is not None:
        path = Path(flags.perfetto).expanduser()
        write_perfetto(runs[0], path)
        print(f"{path}: open it at https://ui.perfetto.dev")
    if flags.timeline:
        name = "-".join([folder.sweep, *map(str, numbers)])
        path = folder.results / TIMELINES / f"{name}.html"
        draw(runs).write(path)
        print(path)
