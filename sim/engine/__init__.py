"""simulate(): the policy's plan, its layout in arrays, the event loop, the record of a run."""
