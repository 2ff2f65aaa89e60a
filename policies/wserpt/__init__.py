"""Weighted shortest expected remaining processing time: size × worth × order × placement.

A module a dimension: `sizes`, `worth`, `order` and `placement`, each a small protocol with parts.
`policy` joins them, and chooses by what the workload offers (`offers`).
"""
