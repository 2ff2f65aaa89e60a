"""Published numbers of the paper, in `published.yaml`: read by `sim.published.numbers`."""
