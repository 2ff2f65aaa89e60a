"""Notes on options of a site that are not simulated."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Notes:
    """Notes on what is not simulated: source, option, and what it may change; each once."""

    lines: dict[str, None] = field(default_factory=dict)

    def add(self, source: str, option: str, effect: str) -> None:
        """Add a note."""
        self.lines[f"{source}: {option}: {effect}"] = None
