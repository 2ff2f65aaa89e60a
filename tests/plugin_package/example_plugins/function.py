"""A function of `import sweep`."""


def example_total(*numbers: float) -> float:
    """Add numbers up."""
    return sum(numbers)
