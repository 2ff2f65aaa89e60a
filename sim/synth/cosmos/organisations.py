"""How many organisations there are, and the queues that they have."""

from __future__ import annotations

from sim.published import numbers


def n_organisations(scale: float) -> int:
    """Return how many organisations there are at a scale: 150 at full scale, 5 at least.

    They shrink like the jobs, so that a queue has as many jobs at once at every scale.
    """
    at_full_scale: int = numbers("wing")["cosmos"]["organisations"]
    return max(5, round(at_full_scale * scale))


def queue_shares(organisations: int) -> dict[str, float]:
    """Return the hard share of each organisation's queue, falling like 1 / (rank + 2).

    How uneven they are is not published. The largest of 150 has 8 % and the smallest 0.16 %.
    """
    weight = [1.0 / (rank + 3) for rank in range(organisations)]
    return {f"org-{letters(rank)}": w / sum(weight) for rank, w in enumerate(weight)}


def letters(number: int, width: int = 3) -> str:
    """Return a number as letters, as names with digits are taken for dated ones."""
    text = ""
    for _ in range(width):
        number, digit = divmod(number, 26)
        text = chr(97 + digit) + text
    return text
