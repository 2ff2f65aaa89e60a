"""Times as texts: ISO 8601, as seconds since 1970."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Final

_ZONE_NAME = re.compile(r"\[[^\]]*\]$")  # after an offset, as Java's ZonedDateTime writes it

FORM: Final = (
    r"^ *[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?"
    r" ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)?(\[[^\]]*\])?)? *$"
)
"""Regular expression that a time in a table must match."""
EXAMPLE: Final = "2025-03-03 01:20:00"


def seconds(text: Any) -> tuple[float, bool]:
    """Return a time in seconds since 1970, and whether it states its zone; it is UTC if not.

    Digits beyond microseconds are cut off. The name of a zone may follow an offset in brackets.

    Raises
    ------
    ValueError
        If it is not in ISO 8601.
    """
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is no text")
    try:
        when = dt.datetime.fromisoformat(text)
    except ValueError:
        plain = _ZONE_NAME.sub("", text.strip())
        when = dt.datetime.fromisoformat(plain.replace(" UTC", "Z"))
        if when.tzinfo is None and plain != text.strip():  # the name alone has no offset
            raise
    try:
        if when.tzinfo is None:
            return when.replace(tzinfo=dt.UTC).timestamp(), False
        return when.timestamp(), True
    except OverflowError as error:
        raise ValueError(str(error)) from None
