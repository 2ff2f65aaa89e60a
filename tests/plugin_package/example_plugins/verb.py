"""Verb that counts the jobs of a drawn workload."""

import sim


def example_count_arguments(parser):
    """Add the flag."""
    parser.add_argument("--jobs", type=int, default=7, help="jobs to draw")


def example_count(command):
    """Count the jobs that the example's generator draws."""
    print(f"{sim.synthesize('example_poisson', jobs=command.flags.jobs).n_jobs} jobs")
    return 0
