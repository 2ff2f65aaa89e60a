"""Synthesize a workload from probability tables and write it as a folder of Parquet files."""

from __future__ import annotations

import argparse

from sim.cli.verbs._options import parse_pairs, print_workload

HELP = "synthesize a workload like a published one, or like your own"
EXAMPLE = """examples:
  python -m sim synth alibaba2018 work/synth --jobs 10000 --seed 1
  python -m sim synth alibaba2018 work/mine --tables mine.json --set max_tasks_per_stage=500"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("name", metavar="NAME", help="generator, e.g. alibaba2018")
    parser.add_argument("out", metavar="OUT", help="folder to write the workload to")
    parser.add_argument("--jobs", metavar="N", type=int, default=10_000, help="default: 10000")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="default: 0")
    parser.add_argument(
        "--tables", metavar="FILE", help="tables made by `fit`; default: the published workload's"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="another option of the generator; may be repeated",
    )


def run(args: argparse.Namespace) -> None:
    """Synthesize, and print what was made and written."""
    from sim.base.errors import InputError
    from sim.synth import synthesize

    options = {"jobs": args.jobs, "seed": args.seed}
    if args.tables is not None:
        options["tables"] = args.tables
    for key, value in parse_pairs(args.settings, "--set").items():
        if key in options or key == "tables":
            raise InputError(f"give --{key} {value}, not --set {key}={value}")
        options[key] = value
    workload = synthesize(args.name, **options)
    workload.write(args.out)
    print(f"synthesized {args.name} with seed {args.seed}")
    print_workload(workload)
    print(f"written to {args.out}")
    print(f"next: python -m sweep trace=parquet trace.path={args.out}")
