"""Verb that counts the jobs of a drawn workload."""

import sim


def example_count(command):
    """Count the jobs that the example's generator draws."""
    print(f"{sim.synthesize('example_poisson', jobs=7).n_jobs} jobs")
    return 0
