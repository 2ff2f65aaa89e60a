"""Published policies for clusters of GPUs, of several kinds of machines, as baselines."""
