"""Parts that readers of whole sites share: notes, aliases, and the writing of options."""
