"""The platform: a grid of cells in; simulated, stored, tracked and reported out.

Start it with ``python -m sweep``. Importing this package is cheap; Ray, MLflow and the compiled
kernel are loaded only once there is a cell to run.
"""
