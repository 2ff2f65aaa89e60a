"""From the command line to cells: options, Hydra's grammar, axes."""
