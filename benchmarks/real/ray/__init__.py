"""The simulator against Ray's own scheduler, with tasks that sleep on several raylets."""
