"""Text that ``sacct --parsable2`` writes: header, delimiter, and the types of its columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc

from sim.base.errors import InputError
from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    column_names,
    first_line,
    open_text,
    read_bytes,
    read_columns,
)
from sim.traces.sacct.columns import NO_LIMIT_TEXT, SUBMIT_OPTIONS, UNKNOWN_TEXT, Log
from sim.traces.sacct.resources import MEMORY

NEEDED: Final = ("JobID/JobIDRaw", "Submit", "Start", "End/Elapsed/ElapsedRaw")
FORMAT: Final = (
    "JobID,Cluster,User,Account,Partition,QOS,Submit,Eligible,Start,End,Elapsed,Timelimit,State,"
    "AllocCPUS,NNodes,AllocTRES,NodeList,Priority,Reason,SubmitLine"
)
"""Recommended fields."""
HINT: Final = f"; run sacct with --parsable2, without --noheader, and with --format={FORMAT}"
DELIMITERS: Final = "|,;\t^~!#%:"
WRONG_WIDTH: Final = "wrong number of fields"
FREE_TEXT: Final[tuple[str, ...]] = (
    "JobName", "Comment", "AdminComment", "SystemComment", "WorkDir", "SubmitLine", "Reason",
    "Container", "Constraints", "Extra", "StdOut", "StdErr", "StdIn",
)  # fmt: skip
"""Columns that may hold the delimiter, or a line end."""
_TRES: Final = ("AllocTRES", "ReqTRES")
_TIME = Field(
    form=rf"^(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d|\d{{1,12}}|{UNKNOWN_TEXT})$",
    example="2026-03-01T09:30:00",
)
_SPAN = Field(
    form=rf"^((\d{{1,6}}-)?(\d{{1,6}}:)?\d{{1,9}}(:\d+(\.\d+)?)?|{NO_LIMIT_TEXT}|{UNKNOWN_TEXT})$",
    example="1-02:03:04",
)
_COUNT = Field(form=rf"^(\d{{1,12}}|{NO_LIMIT_TEXT}|{UNKNOWN_TEXT})$", example="90")
FIELDS: Final = {
    "JobID": Field(required=True),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), _TIME),
    **dict.fromkeys(("Elapsed", "Suspended", "Timelimit"), _SPAN),
    **dict.fromkeys(("ElapsedRaw", "TimelimitRaw"), _COUNT),
    **dict.fromkeys(("AllocCPUS", "NCPUS", "ReqCPUS", "NNodes", "AllocNodes"), Field("whole")),
    "Priority": Field("number"),
    "ReqMem": Field(form=rf"^({MEMORY}|\?)$", example="4000M"),
    **dict.fromkeys(("State", "Cluster", "User", "JobName", "Account", "Partition"), Field()),
    **dict.fromkeys((*_TRES, "NodeList", "QOS", "Dependency", "SubmitLine", "Reason"), Field()),
    "Licenses": Field(),
}
"""Columns that are read, if a log has them."""
_WITH_COMMAS = (*_TRES, "NodeList", "Dependency", "Licenses")
"""Columns that may hold a comma; where that is the delimiter, only one of them can be put right."""
_RESOURCES = Field(form=r"^([^=,|]+=[^=,|]*(,|$))*$", example="cpu=4,mem=8G,node=1")


def read_text(
    path: str | os.PathLike[str], on_bad_row: OnBadRow, bad: BadRows, more: Sequence[str] = ()
) -> Log:
    """Read the columns of a file of ``sacct``, and `more` of them as texts, if it has these.

    Raises
    ------
    InputError
        Of a wrong header, delimiter or row; see `sim.traces.sacct.read`.
    """
    delimiter = _delimiter(path, first_line(path))
    names = column_names(path, delimiter, NEEDED, HINT)
    all_fields = FIELDS | {name: FIELDS.get(name, Field()) for name in more}
    fields = {name: field for name, field in all_fields.items() if name in names}
    id_name = "JobID" if "JobID" in names else "JobIDRaw"
    fields[id_name] = FIELDS["JobID"]
    free_text = FREE_TEXT
    if delimiter == ",":
        fields |= {name: _RESOURCES for name in _TRES if name in names}
        with_commas = tuple(name for name in _WITH_COMMAS if name in names)
        free_text += with_commas if len(with_commas) == 1 else ()
    layout = Layout(
        names, delimiter=delimiter, skip_lines=1, quoted=delimiter != "|", free_text=free_text
    )
    try:
        with open_text(path) as stream:
            log = read_columns(path, stream, layout, fields, on_bad_row, bad)
    except InputError as error:
        if error.rule in (WRONG_WIDTH, "no job left"):
            _check_one_format(path)
        if error.rule == WRONG_WIDTH and delimiter != "|":
            text = f"{error.message} (the delimiter is {delimiter!r}, which values may hold{HINT})"
            raise InputError(text, file=path, line=error.line, rule=error.rule) from None
        raise
    if WRONG_WIDTH in bad:
        _check_one_format(path)
    log["JobID"] = log.pop(id_name)
    if "SubmitLine" in log:
        command = log["SubmitLine"] if "SubmitLine" in more else log.pop("SubmitLine")
        for name, option in SUBMIT_OPTIONS.items():
            value = pc.struct_field(pc.extract_regex(command, option), "value")
            if value.null_count < len(value):
                log.setdefault(name, value)
    return log


def _delimiter(path: str | os.PathLike[str], header: str) -> str:
    """Return the delimiter of a header; refuse columns that are aligned with spaces."""
    for delimiter in DELIMITERS:
        names = {name.strip() for name in header.split(delimiter)}
        if delimiter in header and {"JobID", "JobIDRaw"} & names:
            return delimiter
    if "JobID" in header.split()[:-1]:
        text = f"the columns are aligned with spaces, which cuts long values off{HINT}"
        raise InputError(text, file=path, line=1, rule="no header")
    if "JobID" in header and "Submit" in header:
        shown = " ".join(DELIMITERS.replace("\t", " "))
        text = f"the delimiter of {header[:60]!r} is none of {shown} and tab{HINT}"
        raise InputError(text, file=path, line=1, rule="no header")
    return "|"


def _check_one_format(path: str | os.PathLike[str]) -> None:
    """Refuse a file that has lines of ``jobcomp/filetxt`` too."""
    for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
        if line.startswith(b"JobId="):
            raise InputError(
                "the file has two formats: this line is of Slurm's jobcomp/filetxt "
                "(trace=slurm_jobcomp), the first one of sacct; give each a file of its own",
                file=path,
                line=number,
                rule="two formats",
            )
