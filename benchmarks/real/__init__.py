"""Real schedulers, run on this machine and held against the simulator."""
