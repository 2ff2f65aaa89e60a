"""Benchmarks of speed and memory: ratios to named references, measured in the same run."""
