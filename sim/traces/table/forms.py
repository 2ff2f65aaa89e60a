"""Forms of the texts in a table of jobs, and advice on texts that have another form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sim.base.reading import Field
from sim.traces.table.columns import COLUMNS, Kind, without

NUMBER = r"-?\d{1,20}(\.\d{1,18})?([eE][+-]?\d{1,2})?"
ZONES: Mapping[str, float] = {
    "Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3,
    "EST": -5, "EDT": -4, "MDT": -6, "PST": -8, "PDT": -7, "JST": 9,
}  # fmt: skip
"""Names of time zones that mean one offset, h; others, such as CST and IST, mean several."""
DATE = (
    r"\d{4}[-/](0[1-9]|1[0-2])[-/](0[1-9]|[12]\d|3[01])"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d{1,9})?)?"
    rf"( ?({'|'.join(ZONES)}|[+-]\d\d(:?\d\d)?))?)?"
)
CLOCK = r"((\d{1,6}-)|(\d{1,6} days?,? ))?\d{1,6}:[0-5]\d:[0-5]\d(\.\d{1,9})?"
_LENGTH = r"\d{1,9}(\.\d{1,9})? ?"
WORDS_OF_TIME = (
    rf"({_LENGTH}(d|days?),? ?)?({_LENGTH}(h|hrs?|hours?),? ?)?({_LENGTH}(m|mins?|minutes?),? ?)?"
    rf"({_LENGTH}(s|secs?|seconds?),? ?)?({_LENGTH}(ms|milliseconds?))?"
)
MISSING = (
    r"(?i:unknown|n/?a|none|null|nat|nan|\(null\)|-+|unlimited|infinite|partition_limit|invalid)"
)
"""Words that programs write where there is no value, or no limit."""
_AMOUNT = r"\d{1,9}(\.\d{1,18})?"
_COUNT = r"\d{1,9}(\.0{1,18})?"
_WORD = r"[A-Za-z][A-Za-z0-9_ .+/-]{0,39}"
MEMORY = r"\d{1,15}(\.\d{1,18})?([eE][+-]?\d{1,2})? ?((?i:[kmgtp]i?b?|b))?"

SECONDS = f"^({NUMBER}|{MISSING})$"
DATES = f"^({DATE}|{MISSING})$"
_FORMS: Mapping[Kind, tuple[str, str]] = {
    "time": (f"^({NUMBER}|{DATE}|{MISSING})$", "86400 or 2026-03-01 09:30:00"),
    "span": (f"^({NUMBER}|{CLOCK}|{MISSING}|{WORDS_OF_TIME})$", "86400, 1-00:00:00 or 1h 2m"),
    "amount": (f"^({_AMOUNT}|{MISSING})$", "4 or 1.5"),
    "count": (f"^({_COUNT}|{MISSING})$", "4"),
    "memory": (f"^({MEMORY}|{MISSING})$", "16, 16G or 4000M"),
    "priority": (f"^({NUMBER}|{MISSING}|{_WORD})$", "5, -1.5 or high"),
}
_DECIMAL_COMMA = re.compile(r"^-?\d+,\d+$")
_DAY_FIRST = re.compile(r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}")
_ZONE_NAME = re.compile(r"\d ?([A-Z][A-Za-z/_]+)$")
_HALF_DAY = re.compile(r"(?i)\d ?[ap]\.?m\.?$")
_TWO_PARTS = re.compile(r"^\d+:\d\d$")
SPREADSHEET_DAYS = (25_569.0, 73_050.0)
"""Days from 1970 to 2099, as a spreadsheet counts them: from 1900."""


def field_of(
    column: str, form: str | None = None, example: str | None = None, also: Sequence[str] = ()
) -> Field:
    """Return the text field of a column; of times with another form if one is given.

    `also` are further texts that it may have.
    """
    kind = COLUMNS[column]
    if kind in ("text", "ids"):
        return Field()
    usual, usual_example = _FORMS[kind]

    def explain(text: str) -> str:
        return _advice(kind, text) + without(column)

    whole = "|".join([form or usual, *(f"^{re.escape(text)}$" for text in also)])
    return Field(form=whole, example=example or usual_example, explain=explain)


def example_of(kind: Kind) -> str:
    """Return a text that has the form of a kind."""
    return _FORMS[kind][1] if kind in _FORMS else "a text"


def _advice(kind: Kind, text: str) -> str:
    """Return what a text looks like, and how to write it."""
    if _DECIMAL_COMMA.match(text):
        point = text.replace(",", ".")
        first, last = SPREADSHEET_DAYS
        is_day = kind == "time" and first <= float(point) <= last
        days = "; days of a spreadsheet? save the column as dates" if is_day else ""
        return f" (a decimal comma? write {point}{days})"
    if kind == "time":
        if _DAY_FIRST.match(text):
            return " (day or month first? write the year first, as only that is unambiguous)"
        if _HALF_DAY.search(text):
            return " (write hours from 0 to 23)"
        if name := _ZONE_NAME.search(text):
            return f" (the zone {name[1]} may mean several: write an offset, like +05:30)"
    if kind == "span" and _TWO_PARTS.match(text):
        return f" (minutes and seconds? write 0:{text})"
    return ""
