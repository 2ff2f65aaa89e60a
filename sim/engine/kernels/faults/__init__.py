"""Ends of running tasks that change: failures, lost machines, slow periods; and what is kept."""
