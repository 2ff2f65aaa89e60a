"""Stores of results: the cell cache, the journal, a sweep's folder, provenance."""
