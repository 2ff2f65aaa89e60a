"""Bound every job's completion time from below on a given cluster: no schedule beats it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim.cli.verbs._options import parse_pairs, print_workload

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster

HELP = "lower bounds on the completion time of every job"
EXAMPLE = """examples:
  python -m sim bound work/synth --slots 1000
  python -m sim bound work/synth bounds.parquet --machines 200 --shape cpu=96,mem=100"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload's folder")
    parser.add_argument("out", metavar="OUT", nargs="?", help="Parquet file for a row a job")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--slots", metavar="N", type=int, help="one pool of N slots, one a task")
    size.add_argument("--machines", metavar="N", type=int, help="N like machines; needs --shape")
    parser.add_argument("--shape", metavar="R=X,...", help="what a machine has: cpu=96,mem=100")


def run(args: argparse.Namespace) -> None:
    """Compute the bounds, print their quantiles, and write them where wanted."""
    import numpy as np
    import pyarrow.parquet as pq

    from sim.bounds import lower_bound
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
    from sim.base.errors import InputError
    from sim.cluster.cluster import Cluster

    if args.slots is not None:
        if args.shape is not None:
            raise InputError("--shape goes with --machines; a slot has no shape")
        return Cluster.slots(args.slots)
    if args.shape is None:
        raise InputError("--machines needs --shape, e.g. --shape cpu=96,mem=100")
    shape = parse_pairs(args.shape.split(","), "--shape")
    for name, amount in shape.items():
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise InputError(f"--shape: {name} must be a number, not {amount!r}")
    return Cluster.machines(args.machines, **shape)
