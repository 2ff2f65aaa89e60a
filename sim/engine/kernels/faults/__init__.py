"""Ends of running tasks that change: failures, lost machines, evictions, slow periods."""
