"""Characterise a workload: how much of it has dependencies, when, of what shape, how variable.

Prints tables and writes them as Parquet, with one HTML page of plots, into a folder. WORKLOAD is a
workload's folder, or FORMAT:PATH to read a trace as it lies. Beside it may stand others.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.cli import Verb, add_many, parse_pairs

if TYPE_CHECKING:
    from sim.describe import Dataset
    from sim.workload.workload import Workload

_EXAMPLE = """examples:
  python -m sim describe work/alibaba
  python -m sim describe alibaba2018:batch_task.csv.gz --beside random --beside tpch
  python -m sim describe work/mine --beside work/alibaba --out results/describe/both
  python -m sim describe work/mine --beside work/synth --half"""

TPC = {"tpch": "tpch_17_queries.txt", "tpcds": "tpcds_41_queries.txt"}
"""Comparators known by a word, and their files in the folder of TPC DAGs."""
_LENIENT = {"on_bad_row": "skip", "unfinished": "keep"}
"""Options of readers that keep a description whole, whatever its trace is like."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload's folder, or FORMAT:PATH")
    parser.add_argument(
        "--format", metavar="FORMAT", help="read WORKLOAD as a trace of this format"
    )
    what = "an option of the format's reader (bad rows are skipped and counted, unfinished ones "
    add_many(parser, "--option", "KEY=VALUE", f"{what}kept, unless told otherwise)")
    what = "random (uniform DAGs of the same sizes), tpch, tpcds, a workload's folder or "
    add_many(parser, "--beside", "WHAT", f"{what}FORMAT:PATH")
    parser.add_argument(
        "--dags",
        metavar="FOLDER",
        default="../shared/traces/dags",
        help="where the files of tpch and tpcds are; default: %(default)s",
    )
    parser.add_argument(
        "--half",
        action="store_true",
        help="say whether what is beside is alike the second half of WORKLOAD's jobs, as far as "
        "two halves are; fit it on the first (convert --half first)",
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of random; default: 0")
    parser.add_argument(
        "--out", metavar="FOLDER", help="folder to write to; default: results/describe/NAME"
    )


def run(args: argparse.Namespace) -> None:
    """Describe, print, write."""
    from sim.describe import Dataset, describe, write_page  # late: `--help` answers at once
    from sim.describe.page import text_lines
    from sim.describe.run import random_comparator

    given = parse_pairs(args.option, "--option")
    name, workload = _load(args.workload, args.format, given)
    data = Dataset.from_workload(name, workload)
    taken = [name]
    beside = []
    for source in args.beside:
        other = (
            random_comparator(data, args.seed) if source == "random" else _beside(source, args.dags)
        )
        taken.append(_free(other.name, taken))
        beside.append(other.renamed(taken[-1]))
    description = describe(data, beside, half=args.half)
    print("\n".join(text_lines(description)))
    folder = Path("results", "describe", name) if args.out is None else args.out
    for path in write_page(description, folder):
        print(f"written to {path}")


def _beside(source: str, folder: str) -> Dataset:
    from sim.describe import Dataset  # late: `--help` answers at once

    if source in TPC and not Path(source).is_dir():
        path = Path(folder, TPC[source])
        return Dataset.from_workload(source, _tpc(source, path))
    return Dataset.from_workload(*_load(source, None, {}))


def _tpc(name: str, path: Path) -> Workload:
    from sim.traces import read_trace  # late: `--help` answers at once

    if not path.is_file():
        raise InputError(
            f"the queries of {name} are not there; name their folder with --dags FOLDER, or the "
            f"file with --beside tpc:FILE",
            file=path,
            rule="missing file",
        )
    return read_trace("tpc", path)


def _load(source: str, format_name: str | None, given: dict[str, Any]) -> tuple[str, Workload]:
    """Read a folder, or a trace of a format; return a name for it, and the workload."""
    from sim import traces  # late: `--help` answers at once
    from sim.workload.workload import Workload

    path = source
    if format_name is None and not Path(source).exists():
        head, colon, rest = source.partition(":")
        if colon:
            format_name, path = head, rest
    if format_name is None:
        if given:
            raise InputError("--option goes with --format FORMAT or FORMAT:PATH")
        if Path(source).is_file():
            raise InputError(
                f"it is a file; say which format it has, {traces.names()[0]}:{source} for example "
                f"(known: {', '.join(traces.names())})",
                file=source,
                rule="missing format",
            )
        return _name(path), Workload.read(source)
    lenient = {k: v for k, v in _LENIENT.items() if k in traces.options(format_name)}
    return _name(path), traces.read_trace(format_name, path, **{**lenient, **given})


def _name(path: str) -> str:
    """Return what a file or folder is called, without the endings that tell its format."""
    place = Path(path).resolve()
    return place.name if place.is_dir() else re.sub(r"(\.(gz|csv|txt|swf|json))+$", "", place.name)


def _free(name: str, taken: list[str]) -> str:
    """Return `name`, with a number behind it if it is taken."""
    n = 2
    free = name
    while free in taken:
        free = f"{name} ({n})"
        n += 1
    return free


DESCRIBE = Verb(
    "describe", "characterise a workload: dependencies, DAGs, variability, recurrence", __doc__,
    _EXAMPLE, add_arguments, run,
)  # fmt: skip
