"""Reproductions of published figures: studies, their pages, and the list of pages."""
