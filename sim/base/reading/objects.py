"""Objects of Kubernetes' API, in files as ``kubectl get -o json`` writes them.

Source: the API reference of Kubernetes (``meta/v1`` ObjectMeta, List), and the labels by which
Kueue and Volcano name queues.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sim.base.errors import InputError
from sim.base.reading.bad_rows import BadRows
from sim.base.reading.json_records import json_files, json_records
from sim.base.reading.layout import OnBadRow
from sim.base.reading.text import BadLineError, handle_bad_line
from sim.base.reading.values import check_text, json_field, parse_time

Conditions = dict[str, tuple[str, float]]
Notice = Callable[[str], None]
_LOCAL_QUEUE: Final = ("kueue.x-k8s.io/queue-name",)
_QUEUES: Final = ("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")
_GROUPS: Final = {"Job": "batch/v", "Workload": "kueue."}
"""Kinds of which other programs have one of the same name, and how the group of theirs begins."""
_BY_FIELD: Final = {
    "containers": "Pod", "podSets": "Workload", "minMember": "PodGroup", "entrypoint": "Workflow"
}  # fmt: skip
"""Kinds of objects that do not tell theirs, by a field of ``spec``."""
_MAX_COUNT: Final = 10**7


@dataclass(slots=True)
class Meta:
    """Part that all objects have.

    Attributes
    ----------
    version : tuple
        Orders the states of one object by time.
    owner_kind, owner : str
        Kind and uid of its controller; a Job's kind is ``batch/Job``.
    owners : tuple of str
        Uids of all that own it.
    template : str
        Its CronJob, or the prefix of generated names; "" for neither.
    is_local : bool
        The queue is one of its namespace, as those of Kueue are.
    """

    uid: str
    namespace: str
    name: str
    created_s: float
    version: tuple[bool, float]
    owner_kind: str
    owner: str
    owners: tuple[str, ...]
    template: str
    queue: str
    is_local: bool
    priority: float
    limit_s: float

    @property
    def place(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class Object(Protocol):
    """An object that was parsed."""

    @property
    def meta(self) -> Meta:
        """Part that all objects have."""

    @property
    def version(self) -> tuple[Any, ...]:
        """Order among states of one object: later ones are larger."""


Parser = Callable[[Any, Notice], Object]


def read_objects(
    path: str | os.PathLike[str],
    command: str,
    parsers: Mapping[str, Parser],
    on_bad_row: OnBadRow,
    bad: BadRows,
    notice: Callable[[str, int], None],
    other_kinds: Collection[str] = (),
) -> dict[str, list[Any]]:
    """Read the objects of a file or folder: the latest state of each, by kind, ordered by uid.

    Parameters
    ----------
    path : path-like
    command : str
        The command that writes such a file, for errors.
    parsers : mapping of str to callable
        Parser of each kind that is read, which counts peculiarities of an object by a callable;
        objects of other kinds are counted.
    on_bad_row : {"error", "skip"}
        Objects that a parser refuses: raise, or drop and count in `bad`.
    notice : callable
        Counts peculiarities of the states that are returned, and of the file.
    other_kinds : collection of str
        Kinds that are read elsewhere: they are not counted.

    Raises
    ------
    InputError
        If there are only objects of other kinds, and as `json_files` and `json_records`.
    """
    latest: dict[str, dict[str, tuple[Object, Counter[str]]]] = {kind: {} for kind in parsers}
    unread: Counter[str] = Counter()
    for file in json_files(path):
        around: dict[str, Any] = {}
        for line, record, around in json_records(file, ("items",), command):
            with handle_bad_line(file, line, on_bad_row, bad):
                if isinstance(record, dict) and "kind" not in record and "object" in record:
                    record = record["object"]  # of an event that kubectl get --watch prints
                kind, rules = _kind(record, around) or "unknown", Counter[str]()
                if kind not in parsers:
                    unread[kind] += 1
                    continue
                state, states = _parse(parsers[kind], kind, record, rules), latest[kind]
                earlier, _ = states.setdefault(state.meta.uid, (state, rules))
                if earlier is not state:
                    notice("objects given again: their latest state", 1)
                if state.version > earlier.version:
                    states[state.meta.uid] = (state, rules)
        with handle_bad_line(file, 1, on_bad_row, bad):
            if json_field(around, "metadata.continue", str):
                notice("lists that go on: fetch them whole", 1)
    if unread and not bad and not any(latest.values()):
        text = ", ".join(f"{n:,} {kind}" for kind, n in sorted(unread.items())[:5])
        raise InputError(
            f"there is no {' or '.join(parsers)}, but {text}; write the file with {command}",
            file=path, line=1, rule="no job left",
        )  # fmt: skip
    for kind, n in unread.items():
        if kind in other_kinds:
            continue
        notice(f"objects of the kind {kind}: not read", n)
    for _, rules in (item for states in latest.values() for item in states.values()):
        for rule, n in rules.items():
            notice(rule, n)
    return {kind: [states[uid][0] for uid in sorted(states)] for kind, states in latest.items()}


def _parse(parse: Parser, kind: str, record: Any, rules: Counter[str]) -> Object:
    """Parse an object, and count its peculiarities by rule; errors name it."""
    try:
        return parse(record, lambda rule: rules.update([rule]))
    except BadLineError as error:
        meta = record.get("metadata")
        names = [meta.get(key) for key in ("namespace", "name")] if isinstance(meta, dict) else []
        name = "/".join(str(item) for item in names if item)
        raise BadLineError(error.rule, f"{kind} {name or 'without a name'}: {error}") from None


def parse_meta(record: Any) -> Meta:
    """Parse what all objects have."""
    name, namespace, version, prefix, uid = (
        json_field(record, f"metadata.{key}", str)
        for key in ("name", "namespace", "resourceVersion", "generateName", "uid")
    )
    created_s = time_of(record, "metadata.creationTimestamp")
    if not name or math.isnan(created_s):
        missing = "creationTimestamp" if name else "name"
        raise BadLineError("missing value", f"it has no metadata.{missing}")
    owners = json_field(record, "metadata.ownerReferences", list)
    controllers = [item for item in owners if json_field(item, "controller", bool)] or owners[:1]
    kind, owner_name, owner, version_of = (
        json_field(controllers[0], key, str) if controllers else ""
        for key in ("kind", "name", "uid", "apiVersion")
    )
    made_by = owner_name if kind.startswith("Cron") else prefix
    marks = marks_of(record)
    local = json_field(record, "spec.queueName", str) or first_mark(marks, _LOCAL_QUEUE)
    limits = ("spec.activeDeadlineSeconds", "spec.maximumExecutionTimeSeconds")
    return Meta(
        uid=uid or f"{namespace}/{name}/{created_s}",
        namespace=namespace,
        name=name,
        created_s=created_s,
        version=(version.isdecimal(), float(version[:18]) if version.isdecimal() else 0.0),
        owner_kind="batch/Job" if kind == "Job" and version_of.startswith("batch/") else kind,
        owner=owner,
        owners=tuple(json_field(item, "uid", str) for item in owners),
        template=f"{namespace}/{made_by}" if made_by else "",
        queue=local or json_field(record, "spec.queue", str) or first_mark(marks, _QUEUES),
        is_local=bool(local),
        priority=json_field(record, "spec.priority", float),
        limit_s=min(number_of(record, key, math.inf) for key in limits),
    )


def conditions_of(record: Any) -> Conditions:
    """Return status and time of the last change of each condition."""
    return {
        json_field(item, "type", str): (
            json_field(item, "status", str), time_of(item, "lastTransitionTime")
        )
        for item in json_field(record, "status.conditions", list)
    }  # fmt: skip


def since(conditions: Conditions, name: str, status: str) -> float:
    """Return since when a condition has this status; NaN if it has not."""
    actual, since_s = conditions.get(name, ("", math.nan))
    return since_s if actual == status else math.nan


def time_of(record: Any, name: str) -> float:
    """Return a time, s since 1970; NaN if it is missing."""
    return parse_time(name, json_field(record, name, str))


def number_of(record: Any, name: str, default: float) -> float:
    """Return a number, or the default if it is missing."""
    number = json_field(record, name, float)
    return default if math.isnan(number) else number


def count_of(record: Any, name: str, default: int) -> int:
    """Return a count, or the default if it is missing."""
    number = number_of(record, name, default)
    if not 0 <= number <= _MAX_COUNT:
        text = f"{name} is {number:g}; it must be from 0 to {_MAX_COUNT:,}"
        raise BadLineError("number out of range", text)
    return int(number)


def marks_of(record: Any) -> dict[str, Any]:
    """Return labels and annotations, together."""
    return {
        **json_field(record, "metadata.annotations", dict),
        **json_field(record, "metadata.labels", dict),
    }


def first_mark(marks: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the value of the first of these labels and annotations; "" for none."""
    return next((check_text(name, str(marks[name])) for name in names if marks.get(name)), "")


def _kind(record: Any, around: Mapping[str, Any]) -> str:
    """Return the kind of an object; another program's object of the same name has its group."""
    kind = json_field(record, "kind", str) or json_field(around, "kind", str).removesuffix("List")
    group = json_field(record, "apiVersion", str) or json_field(around, "apiVersion", str)
    if kind in _GROUPS and group and not group.startswith(_GROUPS[kind]):
        return f"{kind} of {group}"
    spec = {} if kind else json_field(record, "spec", dict)
    return kind or next((name for field, name in _BY_FIELD.items() if field in spec), "")
