"""Questions that a sweep may ask beyond a grid's: each room is a plug-in of the platform."""
