"""Placement that looks past the first stage that does not fit, or for the stage that packs best."""
