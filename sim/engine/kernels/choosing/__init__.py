"""Choice among the machines with room for a task, and of devices there."""
