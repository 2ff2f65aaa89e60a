"""Unmodified Slurm on loopback: clusters of many nodes on one machine, at real or faster time."""
