"""What measures speed and memory, against named references, as ratios in one run."""
