"""Verbs that write a workload (convert, synth), fit a generator (fit), or bound it (bound)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import InputError
from sim.cli import Verb, add_repeatable, parse_pairs, print_workload

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", metavar="FORMAT", help="e.g. alibaba2018, swf, parquet")
    parser.add_argument("source", metavar="IN", help="file or folder of the trace")
    parser.add_argument("out", metavar="OUT", help="folder to write the workload to")
    add_repeatable(parser, "--option", "KEY=VALUE", "option of the format's reader")
    parser.add_argument(
        "--half", choices=("first", "second"),
        help="keep one half of the jobs, by a hash of their ids; see describe --half",
    )  # fmt: skip
    help_text = "transform to apply before writing, e.g. give_dags:seed=1"
    add_repeatable(parser, "--transform", "NAME[:KEY=VALUE,...]", help_text)


def _convert(args: argparse.Namespace) -> None:
    """Convert a trace; print the counts of rows read, dropped and written."""
    from sim.traces import read_trace  # late: `--help` answers at once

    options = parse_pairs(args.option, "--option")
    workload = read_trace(args.format, args.source, **options)
    if args.half is not None:
        from sim.workload.halves import second_half  # as above

        workload = workload.take(second_half(workload) == (args.half == "second"))
    for transform in args.transform:
        from sim import transforms  # as above

        name, _, chosen = transform.partition(":")
        pairs = chosen.split(",") if chosen else []
        workload = transforms.apply(workload, name, **parse_pairs(pairs, "--transform"))
    workload.write(args.out)
    print(f"read {args.source} as {args.format}")
    print_workload(workload, Path(args.source).name)
    print(f"written to {args.out}")
    print(f"next: python -m sweep trace=parquet trace.path={args.out}")


def _add_synth(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="generator, e.g. alibaba2018")
    parser.add_argument("out", metavar="OUT", help="folder to write the workload to")
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=10_000, help="number of jobs; default: 10000"
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="random seed; default: 0")
    parser.add_argument(
        "--tables",
        metavar="FILE",
        help="tables written by `fit`; default: those of the published workload",
    )
    add_repeatable(parser, "--set", "KEY=VALUE", "another option of the generator", "settings")


def _synth(args: argparse.Namespace) -> None:
    """Synthesize a workload; print its size."""
    from sim.synth import synthesize  # late: `--help` answers at once

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


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="IN", help="folder of a workload, or file of published histograms"
    )
    parser.add_argument("out", metavar="OUT", help="file to write the tables to (JSON)")
    parser.add_argument(
        "--sample",
        metavar="FOLDER",
        help="with histograms: folder of a workload with edges and attributes",
    )
    parser.add_argument("--note", metavar="TEXT", help="source of the sample, stored in the tables")
    parser.add_argument(
        "--generator", metavar="NAME", default="alibaba2018",
        help="generator to fit, e.g. alibaba2018 (DAGs, sizes and durations), programs (also "
        "recurrence and users), recurring (needs a history and features); default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--slots", metavar="N", type=int, default=150,
        help="with recurring: number of slots at which the load is 1; default: 150",
    )  # fmt: skip


def _fit(args: argparse.Namespace) -> None:
    """Fit a generator's tables; print the counts of jobs used, dropped and pooled."""
    from sim.synth import GENERATORS  # late: `--help` answers at once

    fitting = GENERATORS.part(args.generator, "fitting")
    if fitting is None:
        able = [name for name in GENERATORS.names() if GENERATORS.part(name, "fitting")]
        raise InputError(
            f"generator {args.generator} can't be fitted; those that can: {', '.join(able)}"
        )
    lines = fitting.fit_tables(
        args.source, args.out, sample=args.sample, note=args.note, n_slots=args.slots
    )
    print(f"fitted {args.source}")
    print("\n".join(lines))
    print(f"written to {args.out}")
    print(f"next: python -m sim synth {args.generator} OUT --tables {args.out}")


def _add_bound(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", metavar="WORKLOAD", help="folder of a workload")
    parser.add_argument(
        "out", metavar="OUT", nargs="?", help="Parquet file to write to, one row per job"
    )
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--slots", metavar="N", type=int, help="one pool of N slots, one per task")
    size.add_argument(
        "--machines", metavar="N", type=int, help="N identical machines; needs --shape"
    )
    parser.add_argument(
        "--shape", metavar="R=X,...", help="resources of a machine, e.g. cpu=96,mem=100"
    )


def _bound(args: argparse.Namespace) -> None:
    """Compute the bounds, print their quantiles, and write them if a file is given."""
    import numpy as np
    import pyarrow.parquet as pq

    from sim.bounds import lower_bound  # late: `--help` answers at once
    from sim.workload.workload import Workload

    cluster = _cluster(args)
    workload = Workload.read(args.workload)
    bounds = lower_bound(workload, cluster)
    print(f"bounded {args.workload} on {cluster.describe()}")
    print_workload(workload)
    print(f"{'seconds':>10}{'mean':>14}{'p50':>14}{'p90':>14}{'p99':>14}{'largest':>14}")
    for name in bounds.column_names[1:]:
        column = bounds[name].to_numpy()
        numbers = [column.mean(), *np.quantile(column, [0.5, 0.9, 0.99]), column.max()]
        print(f"{name:>10}" + "".join(f"{x:>14,.2f}" for x in numbers))
    if args.out is not None:
        pq.write_table(bounds, args.out)
        print(f"written to {args.out}")


def _cluster(args: argparse.Namespace) -> Cluster:
    from sim.cluster.cluster import Cluster  # late: `--help` answers at once

    if args.slots is not None:
        if args.shape is not None:
            raise InputError("--shape needs --machines; a slot has no shape")
        return Cluster.slots(args.slots)
    if args.shape is None:
        raise InputError("--machines needs --shape, e.g. --shape cpu=96,mem=100")
    shape = parse_pairs(args.shape.split(","), "--shape")
    for name, amount in shape.items():
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise InputError(f"--shape: {name} must be a number, not {amount!r}")
    return Cluster.machines(args.machines, **shape)


CONVERT = Verb(
    "convert",
    "convert a real trace to a workload",
    "Convert a trace in a known format to a workload: a folder of Parquet files.",
    """example:
  python -m sim convert alibaba2018 batch_task.csv.gz work/alibaba --option on_bad_row=skip
  python -m sim convert swf log.swf.gz work/dags --transform give_dags:seed=1""",
    _add_convert,
    _convert,
)
SYNTH = Verb(
    "synth",
    "synthesize a workload like a published one, or like your own",
    "Synthesize a workload from probability tables and write it as a folder of Parquet files.",
    """examples:
  python -m sim synth alibaba2018 work/synth --jobs 10000 --seed 1
  python -m sim synth alibaba2018 work/mine --tables mine.json --set max_tasks_per_stage=500""",
    _add_synth,
    _synth,
)
FIT = Verb(
    "fit",
    "fit a generator's tables to a workload, to synthesize more of it",
    "Fit the probability tables of a generator to a workload, for `synth` to draw similar ones.",
    """examples:
  python -m sim fit work/mine mine.json
  python -m sim fit work/mine programs.json --generator programs
  python -m sim fit work/past past.json --generator recurring --slots 150
  python -m sim fit full_trace_histograms.json.gz tables.json --sample work/sample""",
    _add_fit,
    _fit,
)
BOUND = Verb(
    "bound",
    "lower bounds on the completion time of every job",
    "Compute a lower bound on every job's completion time on a cluster: no schedule beats it.",
    """examples:
  python -m sim bound work/synth --slots 1000
  python -m sim bound work/synth bounds.parquet --machines 200 --shape cpu=96,mem=100""",
    _add_bound,
    _bound,
)
