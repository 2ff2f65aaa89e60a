"""simulate(): the plan that a policy writes, its layout, the run's record."""
