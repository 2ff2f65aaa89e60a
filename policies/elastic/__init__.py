"""Policies of elastic jobs: widths by equal shares, marginal speed-up, comparisons, a pool."""
