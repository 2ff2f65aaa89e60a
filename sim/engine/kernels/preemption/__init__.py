"""Preemption: running jobs are stopped for waiting ones."""
