"""Published numbers, in `published.yaml`."""
