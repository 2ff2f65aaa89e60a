"""The first jobs of a workload."""


def example_first(workload, jobs: int):
    """Keep the first jobs."""
    return workload.take(range(min(jobs, workload.n_jobs)))
