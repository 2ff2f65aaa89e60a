"""Verbs ``export`` and ``verify``: a sweep as one file; its cells run again and compared."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from sim.base.errors import InputError
from sim.base.masking import mask_tree
from sim.base.text import printable
from sweep import driver
from sweep.cli.command import Command, run_settings
from sweep.driver.request import recorded_options
from sweep.execution import notes
from sweep.grid.options import Options
from sweep.grid.overrides import Assignment
from sweep.questions.archive import archive, recorded
from sweep.questions.archive.export import export as export_archive
from sweep.questions.archive.remade import FileCheck
from sweep.questions.archive.verification import Verification, sample
from sweep.store.folder import SweepFolder
from sweep.store.provenance import other_bits, other_code, other_plug_ins

TRACES = "paths.traces"
MAX_SEED = 10**9


def export_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [SWEEP] FILE.zip [--with-traces] [paths.results=DIR]"
    parser.add_argument(
        "--with-traces", action="store_true", help="the files of traces too, not their digests"
    )
    parser.epilog = (
        "The same sweep gives the same bytes. Secrets are masked. Data that your own modules open "
        "is not in it."
    )


def export(command: Command) -> int:
    """Write a sweep as one file, for `verify` on another machine: cells, report, own sources."""
    *sweep, name = command.names or ("",)
    if len(sweep) > 1 or not name.endswith(".zip"):
        raise InputError("export takes a sweep and a file: export SWEEP FILE.zip", rule="grammar")
    folder = driver.open_intact(command.results(), sweep[0] if sweep else None)
    file = Path(name).expanduser()
    record = export_archive(folder, file, with_traces=command.flags.with_traces)
    print(f"{folder.sweep}: {notes.count(len(record['entries']), 'files')}")
    for module, source in record["modules"].items():
        print(f"  your module {module}: {archive.OWN}/{source}")
    for trace in record["traces"]:
        inside = "in it" if command.flags.with_traces else "its digest alone (--with-traces)"
        print(f"  trace {trace['text']}: {inside}")
    print(f"python -m sweep verify {file}")
    print(file)
    return 0


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [SWEEP | FOLDER | FILE.zip] [--cells K] [--seed N] [flags]"
    parser.add_argument(
        "--cells", type=int, default=5, metavar="K", help="number of cells (default 5)"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed of their choice (default: drawn, and printed)"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="run the Python modules that FILE.zip brings, fetch the traces that it names",
    )
    parser.epilog = (
        "Cells are run as the sweep recorded them, in this process; nothing is stored. Tables and "
        "report are made anew from the metrics of all cells. paths.traces=DIR holds the traces "
        "that FILE.zip names. The exit code is 1 if a cell or a file differs."
    )


def verify(command: Command) -> int:
    """Run random cells of a sweep again, of a FILE.zip too, make its files anew; compare both."""
    if command.flags.cells < 1:
        raise InputError(f"--cells must be at least 1, not {command.flags.cells}")
    name = command.sweep()
    traces = _folder_of_traces(command)
    if name is not None and Path(name).is_file() and zipfile.is_zipfile(name):
        with archive.opened(Path(name)) as opened:
            opened.import_from(trust=command.flags.trust)
            foreign = opened.foreign(traces, trust=command.flags.trust)
            verification = Verification(opened.folder, opened.folder.results, foreign)
            return _compare(command, opened.folder, verification, opened.options())
    if name is not None and name.endswith(".zip"):
        raise InputError(f"{name} is not there, or is no zip file: `export` writes one")
    results = _results(command)
    folder = driver.open_intact(results, name)
    is_own = folder.path.parent.name == "sweeps"
    results = folder.results if is_own else results
    recorded.check(folder)
    driver.find_recorded_modules(folder)
    options = None
    with contextlib.suppress(InputError):  # a folder that was sent may lack its options
        options = recorded_options(folder, folder.config()["config_dirs"])
    trusts = is_own or command.flags.trust
    verification = Verification(folder, results, trusts_addresses=trusts)
    return _compare(command, folder, verification, options)


def _compare(
    command: Command, folder: SweepFolder, verification: Verification, options: Options | None
) -> int:
    if differs := other_plug_ins(folder.provenance()):
        notes.note(f"{folder.sweep}: {differs}")
    seed = command.flags.seed
    if seed is None:
        seed = secrets.randbelow(MAX_SEED)  # not one that a liar could know
    n_rows = len(folder.failed())
    rows = sample(n_rows, command.flags.cells, seed)
    if len(rows) < n_rows:
        print(f"rows are chosen with --seed {seed}", flush=True)
    n_same = n_unchecked = 0
    for cell in verification.compare(rows):
        n_same += cell.state == "same"
        n_unchecked += cell.state == "not compared"
        labels = " ".join(f"{value}" for value in mask_tree(cell.labels).values())
        print(printable(f"row {cell.row}: {labels}: {cell.text}"), flush=True)
    with TemporaryDirectory(prefix="sweep-verify-") as work:
        checks = [*verification.compare_files(options, Path(work))]
    _print_files(checks, other_code(folder.provenance()))
    n_run, n_left = len(rows) - n_unchecked, n_rows - len(rows) + n_unchecked
    left = f"; {n_left} of {n_rows} rows were not checked" if n_left else ""
    print(f"{n_same} of {n_run} cells are the same, bit for bit{left}")
    if n_same < n_run and (differs := other_bits(folder.provenance())):
        words = f"{folder.sweep} was computed in an environment with other bits: {differs}"
        print(printable(words))
    is_same = n_same == n_run > 0 and not any(check.state == "differs" for check in checks)
    return 0 if is_same else 1


def _print_files(checks: Sequence[FileCheck], other: str) -> None:
    """Print how files compare with those that the cells give: each difference in a line."""
    different = [check for check in checks if check.state == "differs"]
    for check in different:
        print(printable(f"{check.name} differs: {check.reason}"))
    if different and other:
        print(printable(f"{other}, which may tell the same cells otherwise"))
    same = [check for check in checks if check.state == "same"]
    if same:
        names = ", ".join(check.name for check in same)
        print(printable(f"made anew from the cells, and the same: {names}"))
    for check in checks:
        if check.state == "same" and check.reason:
            print(printable(f"  {check.name}: {check.reason}"))
        elif check.state == "not compared":
            print(printable(f"not compared: {check.name}: {check.reason}"))


def _results(command: Command) -> Path:
    words = [w.text for w in _assignments(command) if w.key == "paths.results"]
    return Command(tuple(words), (), command.flags).results()


def _folder_of_traces(command: Command) -> list[Path]:
    """Return the folder of ``paths.traces=``, if it is given."""
    folders = [Path(str(w.value)) for w in _assignments(command) if w.key == TRACES]
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{TRACES}={folder}: no such folder")
    return folders


def _assignments(command: Command) -> list[Assignment]:
    return run_settings(
        command,
        "cells are run as they were recorded; give only keys that say where and how, such as "
        "paths.results=",
    )
