"""Time zones of a table: refuse some with and some without, and place those without in one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.traces.table.columns import Columns
from sim.traces.table.times import DAY_S, Instants, offset_s

_OFFSET = re.compile(r"^(Z|UTC|[+-]\d\d(:?\d\d)?)$")
_STEP_S = 900
"""Clocks are set at whole quarters of an hour."""
_BEGIN = datetime(1970, 1, 1)
_DAYS = (-719_000, 2_900_000)
"""Days that a date of Python can have, with a year to spare."""
WAY_OUT = "give trace.zone=+01:00 or trace.zone=Europe/Berlin for those without"

Offsets = Callable[[Instants], tuple[F8, F8]]


@dataclass(frozen=True, eq=False)
class Placed:
    """Times with a zone each, and `later_s`: what to add for the second of two equal local times.

    It is 0 where the local time exists once.
    """

    instants: Instants
    later_s: F8


def check_zones(
    path: str | os.PathLike[str],
    times: Mapping[str, Instants],
    name_of: Columns,
    zone: str | None,
) -> None:
    """Refuse a table in which some times have a zone and others none, unless one is given."""
    if zone is not None:
        return
    without = [c for c, column in times.items() if column.without_zone.any()]
    with_one = [c for c, column in times.items() if (column.known & ~column.without_zone).any()]
    if not without or not with_one:
        return
    both = [c for c in without if c in with_one]
    if both:
        text = f"some times of {name_of[both[0]]} have a time zone, and others none"
    else:
        text = f"{name_of[with_one[0]]} has a time zone, and {name_of[without[0]]} has none"
    raise InputError(f"{text}: {WAY_OUT}", file=path, rule="mixed time zones")


def offsets_of(zone: str | None) -> Offsets:
    """Return the function that gives the offsets of local times in a zone; None means UTC.

    It returns the offset of each time, s, and that of the second time at which clocks show it.

    Raises
    ------
    InputError
        If it is no offset and no zone of the IANA's.
    """
    if zone is None or _OFFSET.match(zone):
        size_s = 0.0 if zone is None else offset_s(zone)
        return lambda times: (np.full(len(times.day), size_s),) * 2
    try:
        named = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # not found, or no name of a file
        raise InputError(
            f"zone is {zone!r}; it must be an offset, like +01:00, or a name of the IANA's, like "
            "Europe/Berlin",
            rule="unknown zone",
        ) from None
    return lambda times: _local_offsets(times, named)


def place(times: Instants, offsets: Offsets) -> Placed:
    """Give the times without a zone the offsets of one."""
    without = times.without_zone
    nothing = np.broadcast_to(np.float64(0.0), without.shape)
    if not without.any():
        return Placed(times, nothing)
    first, second = offsets(times)
    later_s = np.where(without & (second < first), first - second, nothing)
    return Placed(replace(times, offset_s=np.where(without, first, times.offset_s)), later_s)


def _local_offsets(times: Instants, zone: ZoneInfo) -> tuple[F8, F8]:
    """Return the offsets of local times before and after a change of the clock, s."""
    per_day = DAY_S // _STEP_S
    quarter = np.nan_to_num(times.second).astype(np.int64) // _STEP_S
    days = np.clip(times.day, *_DAYS)
    steps, codes = np.unique(days * per_day + quarter, return_inverse=True)
    pairs = [_offset_pair(int(step), zone) for step in steps]
    first, second = np.array(pairs, np.float64).reshape(-1, 2)[codes].T
    return first, second


def _offset_pair(step: int, zone: ZoneInfo) -> tuple[float, float]:
    local = _BEGIN + timedelta(seconds=step * _STEP_S)
    offsets = (zone.utcoffset(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    first, second = (0.0 if x is None else x.total_seconds() for x in offsets)
    return first, second
