"""``python -m sweep``."""
