"""Published numbers beside ours: studies, pages, the gallery."""
