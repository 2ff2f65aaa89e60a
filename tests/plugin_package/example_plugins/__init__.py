"""Example of a package outside the project: a plug-in of each kind."""
