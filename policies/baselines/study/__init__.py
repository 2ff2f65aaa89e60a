"""Study of policies for clusters of GPUs."""
