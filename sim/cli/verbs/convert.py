"""Read a trace in a known format and write it as a workload: a folder of Parquet files."""

from __future__ import annotations

import argparse

from sim.cli.verbs._options import parse_pairs, print_workload

HELP = "read a real trace, write a workload"
EXAMPLE = """example:
  python -m sim convert alibaba2018 batch_task.csv.gz work/alibaba --option on_bad_row=skip"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("format", metavar="FORMAT", help="e.g. alibaba2018, swf, parquet")
    parser.add_argument("source", metavar="IN", help="the trace's file or folder")
    parser.add_argument("out", metavar="OUT", help="folder to write the workload to")
    parser.add_argument(
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="an option of the format's reader; may be repeated",
    )


def run(args: argparse.Namespace) -> None:
    """Convert, and print what was read, dropped and written."""
    from sim.traces import read_trace

    options = parse_pairs(args.option, "--option")
    workload = read_trace(args.format, args.source, **options)
    workload.write(args.out)
    print(f"read {args.source} as {args.format}")
    print_workload(workload)
    print(f"written to {args.out}")
    print(f"next: python -m sweep trace=parquet trace.path={args.out}")
