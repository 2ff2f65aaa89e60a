"""Numbers of a run: what each metric means, and one call that computes them all."""

from sim.metrics.compute import compute, speedups
from sim.metrics.names import METRICS, Metric, metric, names

__all__ = ["METRICS", "Metric", "compute", "metric", "names", "speedups"]
