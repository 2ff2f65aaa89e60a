"""Generators of DAGPS's workloads: hard DAGs, other domains, production DAGs."""
