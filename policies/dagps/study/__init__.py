"""Study of DAGPS's paper: its figures from finished cells, beside the paper's numbers."""
