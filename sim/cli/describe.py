"""Describe a workload: arrivals, job sizes, load, dependencies, DAG shapes, recurrence.

Prints tables, and writes them as Parquet files with one HTML page of plots. WORKLOAD is a folder
written by `convert` or `synth`, or FORMAT:PATH of a trace file. Use --beside to compare it with
other workloads.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.cli import Verb, add_repeatable, parse_pairs, print_account

if TYPE_CHECKING:
    from sim.describe import Dataset
    from sim.workload.workload import Workload

_EXAMPLE = """examples:
  python -m sim describe work/alibaba
  python -m sim describe alibaba2018:batch_task.csv.gz --beside random --beside tpch
  python -m sim describe work/mine --beside work/alibaba --out results/describe/both
  python -m sim describe work/mine --beside work/synth --half"""

TPC = {"tpch": "tpch_17_queries.txt", "tpcds": "tpcds_41_queries.txt"}
"""Built-in comparators, and their files in the folder of TPC DAGs."""
_LENIENT = {"on_bad_row": "skip", "unfinished": "keep"}
"""Reader options that let incomplete traces be described."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "workload", metavar="WORKLOAD", help="folder of a workload, or FORMAT:PATH of a trace"
    )
    parser.add_argument(
        "--format", metavar="FORMAT", help="read WORKLOAD as a trace in this format"
    )
    add_repeatable(
        parser, "--option", "KEY=VALUE",
        "option of the format's reader (default: skip and count bad rows, keep unfinished jobs)",
    )  # fmt: skip
    add_repeatable(
        parser, "--beside", "OTHER",
        "comparator: random (uniform DAGs of the same sizes), tpch, tpcds, the folder of a "
        "workload or FORMAT:PATH",
    )  # fmt: skip
    parser.add_argument(
        "--dags",
        metavar="FOLDER",
        default="../shared/traces/dags",
        help="folder of the TPC files for --beside tpch and tpcds; default: %(default)s",
    )
    parser.add_argument(
        "--half",
        action="store_true",
        help="test if the workloads given by --beside are as similar to the second half of "
        "WORKLOAD's jobs as two random halves are to each other; fit them on the first half "
        "(convert --half first)",
    )
    parser.add_argument(
        "--seed", metavar="S", type=int, default=0, help="seed of --beside random; default: 0"
    )
    parser.add_argument(
        "--out", metavar="FOLDER", help="folder to write to; default: results/describe/NAME"
    )


def run(args: argparse.Namespace) -> None:
    """Describe a workload; print and write the result."""
    from sim.describe import Dataset, describe, write_page  # late: `--help` answers at once
    from sim.describe.page import text_lines
    from sim.describe.run import random_comparator

    options = parse_pairs(args.option, "--option")
    name, workload = _load(args.workload, args.format, options)
    data = Dataset.from_workload(name, workload)
    names = [name]
    comparators = []
    for source in args.beside:
        other = (
            random_comparator(data, args.seed)
            if source == "random"
            else _load_comparator(source, args.dags)
        )
        names.append(_unique_name(other.name, names))
        comparators.append(other.renamed(names[-1]))
    description = describe(data, comparators, half=args.half)
    print("\n".join(text_lines(description)))
    print_account(workload, Path(args.workload.partition(":")[2] or args.workload).name)
    folder = Path("results", "describe", name) if args.out is None else args.out
    for path in write_page(description, folder):
        print(f"written to {path}")


def _load_comparator(source: str, folder: str) -> Dataset:
    from sim.describe import Dataset  # late: `--help` answers at once

    if source in TPC and not Path(source).is_dir():
        path = Path(folder, TPC[source])
        return Dataset.from_workload(source, _read_tpc(source, path))
    return Dataset.from_workload(*_load(source, None, {}))


def _read_tpc(name: str, path: Path) -> Workload:
    from sim.traces import read_trace  # late: `--help` answers at once

    if not path.is_file():
        raise InputError(
            f"the file of {name} queries does not exist; give its folder with --dags FOLDER, or "
            f"the file with --beside tpc:FILE",
            file=path,
            rule="missing file",
        )
    return read_trace("tpc", path)


def _load(source: str, format_name: str | None, options: dict[str, Any]) -> tuple[str, Workload]:
    """Read a workload's folder, or a trace; return its name and the workload."""
    from sim import traces  # late: `--help` answers at once
    from sim.workload.workload import Workload

    path = source
    if format_name is None and not Path(source).exists():
        head, colon, rest = source.partition(":")
        if colon:
            format_name, path = head, rest
    if format_name is None:
        if options:
            raise InputError("--option needs --format FORMAT or FORMAT:PATH")
        if Path(source).is_file():
            raise InputError(
                f"is a file; give its format, e.g. {traces.names()[0]}:{source} "
                f"(formats: {', '.join(traces.names())})",
                file=source,
                rule="missing format",
            )
        return _dataset_name(path), Workload.read(source)
    lenient = {k: v for k, v in _LENIENT.items() if k in traces.options(format_name)}
    return _dataset_name(path), traces.read_trace(format_name, path, **{**lenient, **options})


def _dataset_name(path: str) -> str:
    """Return the name of a file or folder, without endings such as .csv.gz."""
    resolved = Path(path).resolve()
    return (
        resolved.name
        if resolved.is_dir()
        else re.sub(r"(\.(gz|csv|txt|swf|json))+$", "", resolved.name)
    )


def _unique_name(name: str, names: list[str]) -> str:
    """Return `name`, with a number appended if it is already used."""
    n = 2
    candidate = name
    while candidate in names:
        candidate = f"{name} ({n})"
        n += 1
    return candidate


DESCRIBE = Verb(
    "describe", "describe a workload: arrivals, load, dependencies, DAGs, recurrence", __doc__,
    _EXAMPLE, add_arguments, run,
)  # fmt: skip
