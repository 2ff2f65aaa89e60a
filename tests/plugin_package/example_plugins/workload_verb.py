"""Verb of workloads that counts the jobs of a folder."""

import sim
from sim.cli import Verb


def add_arguments(parser):
    """Add the folder."""
    parser.add_argument("folder")


def run(args):
    """Count the jobs."""
    print(f"{sim.Workload.read(args.folder).n_jobs} jobs")


VERB = Verb("example-size", "count the jobs of a workload", __doc__, "", add_arguments, run)
