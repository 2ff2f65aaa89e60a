"""Compiled loops of the Alibaba generator."""
