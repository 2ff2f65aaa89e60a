"""Compiled replay of history for `policies.estimates.priors`."""
