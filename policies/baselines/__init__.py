"""Published policies for clusters of several kinds of machines, as baselines."""
