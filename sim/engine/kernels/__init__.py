"""The event loop, compiled, over plain arrays."""
