"""Random numbers drawn inside a kernel, and tables to draw from.

Where the number of draws depends on the draws, no array of uniforms can be laid out beforehand.
So each job carries a generator of its own: L'Ecuyer's combined multiplicative one (*Efficient and
portable combined random number generators*, CACM 31, 1988), whose products fit into 64 bits, so
that it gives the same numbers compiled and as plain Python.
"""

from __future__ import annotations

from sim.base.arrays import I8
from sim.base.jit import jit

MODULUS = (2_147_483_563, 2_147_483_399)
"""A state is two numbers, each from 1 to its modulus less 1."""


@jit
def uniform(state_random: I8) -> float:
    """Draw from (0, 1) and move the state on."""
    one = state_random[0] * 40_014 % 2_147_483_563
    two = state_random[1] * 40_692 % 2_147_483_399
    state_random[0] = one
    state_random[1] = two
    apart = one - two
    if apart < 1:
        apart += 2_147_483_562
    drawn: float = apart / 2_147_483_563.0
    return drawn


@jit
def below(n: int, state_random: I8) -> int:
    """Draw a whole number from 0 to n − 1."""
    return int(uniform(state_random) * n)


@jit
def shuffle(state_order: I8, begin: int, end: int, n: int, state_random: I8) -> None:
    """Swap `n` random entries of ``state_order[begin:end]`` to its front, in random order."""
    for i in range(begin, begin + n):
        pick = i + below(end - i, state_random)
        state_order[i], state_order[pick] = state_order[pick], state_order[i]


@jit
def draw(table: I8, row: int, column: int, limit: int, at: float) -> int:
    """Draw one of a table's values of at most `limit`, in proportion to their counts."""
    n_rows = table[0]
    n_columns = table[1]
    r = _last(table, 2, 2 + n_rows, row) - 2
    begins = 2 + n_rows
    lowers = begins + n_rows + 1
    c = _last(table, lowers + table[begins + r], lowers + table[begins + r + 1], column) - lowers
    cells = lowers + n_columns
    values = cells + n_columns + 1
    cums = values + table[cells + n_columns]
    first = table[cells + c]
    last = _last(table, values + first, values + table[cells + c + 1], limit) - values
    ticket = int(at * table[cums + last])
    low = first
    high = last
    while low < high:  # the first value whose counts, added up, pass the ticket
        middle = (low + high) >> 1
        if table[cums + middle] <= ticket:
            low = middle + 1
        else:
            high = middle
    drawn: int = table[values + low]
    return drawn


@jit
def _last(table: I8, begin: int, end: int, most: int) -> int:
    """Return the last place of an ascending run with an entry of at most `most`, or the first."""
    low = begin + 1
    high = end
    while low < high:
        middle = (low + high) >> 1
        if table[middle] <= most:
            low = middle + 1
        else:
            high = middle
    return low - 1
