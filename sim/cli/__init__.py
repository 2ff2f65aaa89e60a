"""``python -m sim``."""
