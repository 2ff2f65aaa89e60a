"""From words to cells: options, Hydra's grammar, axes."""
