"""Study: the longest completion time by policy, beside a published one."""

from sweep.questions.papers.figures import grouped, means


def longest(finished):
    """Compute the mean over seeds of each policy's longest completion time."""
    policies = grouped(finished.cells, "policy")
    yield from means("longest", policies, "example_jct_max_s", paper=("example", "longest"))
