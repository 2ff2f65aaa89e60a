"""Compiled loops over plain arrays; `_jit` is the only module here that imports numba."""
