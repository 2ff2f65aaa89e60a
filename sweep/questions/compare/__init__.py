"""Comparison of two sweeps: ``python -m sweep report A B``.

`matching` matches their cells by label and compares metrics bit by bit, `changes` tests what
changed over seeds, `comparison` prints the differences and writes them as pages.
"""
