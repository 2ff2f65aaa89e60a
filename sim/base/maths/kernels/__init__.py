"""Transcendental functions of scalars and arrays, compiled."""
