"""Attacks that state part cells do not give: rows, origin, files, record, damage."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.damages import damages
from tests.sweep.questions.archive import entries as archives
from tests.sweep.questions.archive.changes import (
    ANSWER,
    CONFIG,
    HTML,
    PROVENANCE,
    UNREAD,
    VERDICT,
    Attack,
    Change,
    both,
    changed_words,
    configured,
    words,
)
from tests.sweep.questions.archive.entries import CELLS, RECORD, Entries, load, set_cells, store


def _values(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return values


def _set(name: str, make: Callable[[list[Any]], Any]) -> Change:
    def change(entries: Entries) -> None:
        archives.set_column(entries, name, make(_values(archives.cells(entries), name)))

    return change


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value}2"
    if isinstance(value, int | float):
        return value + 1 if value == value else 1.0
    return "other" if value is None else [value]


def _one_changed(values: list[Any], row: int) -> list[Any]:
    return [_other(value) if k == row else value for k, value in enumerate(values)]


def _failed(entries: Entries) -> None:
    """Mark a lying row as failed."""
    _set("jct_mean_s", lambda values: _one_changed(values, 1))(entries)
    _set("status", lambda values: [values[0], "failed", *values[2:]])(entries)
    for part in ("stage", "type", "message", "traceback"):
        _set(f"error_{part}", lambda values: [None, "policy", *values[2:]])(entries)


def _added_column(name: str, values: list[Any]) -> Change:
    def change(entries: Entries) -> None:
        table = archives.cells(entries)
        set_cells(entries, table.append_column(name, pa.array(values)))

    return change


def _reordered(entries: Entries) -> None:
    table = archives.cells(entries)
    set_cells(entries, table.take([1, 0, *range(2, table.num_rows)]))


def _repeated(entries: Entries) -> None:
    table = archives.cells(entries)
    set_cells(entries, pa.concat_tables([table, table.slice(0, 1)]))


def _renamed(old: str, new: str) -> Change:
    """Rename a policy wherever it is written."""

    def change(entries: Entries) -> None:
        _set("policy", lambda values: [new if v == old else v for v in values])(entries)
        for name in (CONFIG, PROVENANCE, VERDICT, ANSWER, "sweep/table.md", "sweep/report.md"):
            entries[name] = entries[name].replace(old.encode(), new.encode())
        entries[HTML] = entries[HTML].replace(old.encode(), new.encode())

    return change


def _swapped(values: list[str]) -> list[str]:
    return [{"fifo": "las", "las": "fifo"}[value] for value in values]


def lies_in_cells(good: Entries) -> Iterator[Attack]:
    """Yield archives whose rows are not part their cells give."""
    table = archives.cells(good)
    n = table.num_rows
    for name in table.column_names:
        if name == "key":
            continue  # it says on which sources and input a cell ran
        for row in (0, n - 1):
            change = _set(name, lambda values, row=row: _one_changed(values, row))
            yield Attack("lie", f"{name} of row {row}", "grid", change)
    for name in ("jct_mean_s", "jct_speedup_mean", "offered_load"):
        typed: dict[str, Callable[[list[Any]], Any]] = {
            "integers": lambda values: pa.array([int(v or 0) for v in values]),
            "texts": lambda values: pa.array([repr(v) for v in values]),
            "nulls": lambda values: pa.nulls(len(values)),
            "nulls of floats": lambda values: pa.nulls(len(values), pa.float64()),
            "NaN": lambda values: pa.array([float("nan")] * len(values)),
            "single floats": lambda values: pa.array(values, pa.float32()),
            "flags": lambda values: pa.array([True] * len(values)),
        }
        for kind, make in typed.items():
            if name in table.column_names:
                yield Attack("lie", f"{name} as {kind}", "grid", _set(name, make))
    changes: dict[str, Change] = {
        "labels swapped": _set("policy", _swapped),
        "a policy renamed": _renamed("las", "superlas"),
        "a policy called another": _renamed("las", "srpt"),
        "the trace relabelled": _set("trace", lambda values: ["alibaba2018"] * len(values)),
        "a row marked failed": _failed,
        "rows in another order": _reordered,
        "a row twice": _repeated,
        "a row less": lambda e: set_cells(e, archives.cells(e).slice(1)),
        "a metric of its own": _added_column("luck", [7.0] * n),
        "a metric named as swept": both(
            configured(swept=["jct_mean_s"]),
            _set("jct_mean_s", lambda values: [v + 1 for v in values]),
        ),
        "all metrics at once": both(
            *(
                _set(name, lambda values: [1.0] * len(values))
                for name in ("jct_mean_s", "jct_p99_s")
                if name in table.column_names
            )
        ),
        "words of a billion seeds": changed_words("seed=", "seed=range(0,1000000000)"),
        "words of many values": words("policy.queues=range(1,100000)"),
        "words of many more": both(
            changed_words("seed=", "seed=range(0,1000000)"),
            words("capacity=range(1,1000000)", "policy.queues=range(1,1000000)"),
        ),
        "another seed": lambda e: archives.change_configs(e, lambda c: c.update(seed=9)),
        "another capacity": lambda e: archives.change_configs(e, lambda c: c.update(capacity=9.0)),
        "another policy": lambda e: archives.change_configs(
            e, lambda c: c.update(policy={"name": "fifo", "module": None, "params": {}})
        ),
        "another cluster": lambda e: archives.change_configs(
            e, lambda c: c["cluster"].update(load=0.5)
        ),
    }
    for name, change in changes.items():
        yield Attack("lie", name, "grid", change)


def lies_in_origin(good: Entries) -> Iterator[Attack]:
    """Yield archives whose configuration or provenance is not that of their cells."""
    config = yaml.safe_load(good[CONFIG])
    for key, value in config.items():
        other: Any = {"a": 1} if isinstance(value, dict) else _other(value or None)
        if isinstance(value, list):
            other = [*value[1:], "las"]
        yield Attack("lie", f"{key} of config.yaml", "grid", configured(**{key: other}))

    def provenance(key: str, value: Any) -> Change:
        return lambda entries: store(entries, PROVENANCE, load(entries, PROVENANCE) | {key: value})

    (source,) = load(good, PROVENANCE)["inputs"]
    for part, key, value in (
        ("command", "command", "rm -rf /"),
        ("seeds", "seeds", [7]),
        ("no input", "inputs", []),
        ("digest of the input", "inputs", [source | {"digest": "0" * 64}]),
        ("trace of the input", "inputs", [source | {"trace": "alibaba2018"}]),
        ("jobs of the input", "inputs", [source | {"n_jobs": 10**6}]),
    ):
        yield Attack("lie", f"{part} in provenance", "grid", provenance(key, value))


def _figures(entries: Entries) -> None:
    """Change a number of the first plot, which is one of metrics."""
    before, mark, after = entries[HTML].partition(b'id="figures">')
    text, end, rest = after.partition(b"</script>")
    figures = json.loads(text)
    figures[0]["data"][0]["y"] = [0 for _ in figures[0]["data"][0]["y"]]
    entries[HTML] = before + mark + json.dumps(figures).encode() + end + rest


def lies_in_files(base: str, good: Entries) -> Iterator[Attack]:
    """Yield archives with a derived file that its cells do not give."""
    skipped = {CELLS, CONFIG, PROVENANCE, "sweep/changes.diff", archives.SUMS}
    for name in sorted(set(good) - skipped):
        if not name.startswith("sweep/"):
            continue
        changes: dict[str, Change] = {"is gone": lambda e, n=name: e.pop(n) and None}
        if name.endswith(".parquet"):
            table = archives.cells(good, name)
            number = next(
                (f.name for f in table.schema if pa.types.is_floating(f.type)),
                table.column_names[0],
            )
            values = _one_changed(table[number].to_pylist(), 0)
            changes["has another number"] = lambda e, n=name, c=number, v=values: (
                archives.set_column(e, c, v, n)
            )
            changes["has no rows"] = lambda e, n=name: set_cells(
                e, archives.cells(e, n).slice(0, 0), n
            )
        else:
            changes["has another policy"] = lambda e, n=name: e.update(
                {n: e[n].replace(b"las", b"fifo")}
            )
            changes["is of another"] = lambda e, n=name: e.update({n: b"[]\n"})
            changes["has more"] = lambda e, n=name: e.update({n: e[n].rstrip() + b"\n\n"})
        for part, change in changes.items():
            yield Attack("lie", f"{name} {part}", base, change)
    yield Attack("lie", f"plots of {base}", base, _figures)
    smuggled = b'<h3>Jobs at capacity 1</h3>\n<div class="plots">\n<h1>fifo is best</h1></div>\n'
    yield Attack(
        *("lie", f"a heading among plots of {base}", base),
        lambda e: e.update({HTML: e[HTML].replace(b"<h3>Jobs", smuggled + b"<h3>Jobs", 1)}),
    )


def lies_in_record(good: Entries) -> Iterator[Attack]:
    """Yield archives whose ``archive.json`` is not of their content."""
    (trace,) = load(good, RECORD)["traces"]
    name, digest, size = trace["files"][0]
    rest = trace["files"][1:]
    for part, traces in (
        ("digest", [trace | {"files": [[name, "0" * 64, size], *rest]}]),
        ("size", [trace | {"files": [[name, digest, size + 1], *rest]}]),
        ("file", [trace | {"files": rest}]),
        ("name", [trace | {"name": "alibaba2018"}]),
        ("text", [trace | {"text": "alibaba2018"}]),
        ("none", []),
        ("path", [trace | {"name": "../../etc"}]),
        ("kind", [trace | {"is_folder": False}]),
    ):
        yield Attack(
            "record",
            f"another {part} of the trace",
            "grid",
            lambda e, t=traces: store(e, RECORD, load(e, RECORD) | {"traces": t}),
        )
    for key, value in (
        *(("format", 2), ("format", None), ("sweep", "other-1"), ("sweep", "../../a")),
        *(("modules", {"os": "os.py"}), ("modules", {"a": "../a.py"}), ("modules", [])),
        *(("traces", {}), ("sweep", None)),
    ):
        yield Attack(
            "record",
            f"{key} is {value}",
            "grid",
            lambda e, k=key, v=value: store(e, RECORD, load(e, RECORD) | {k: v}),
        )


def _reads_the_same(content: bytes, other: bytes) -> bool:
    """Tell whether two Parquet files hold the same table."""
    try:
        tables = [pq.read_table(pa.BufferReader(data)) for data in (content, other)]
    except (pa.ArrowException, OSError, ValueError):
        return False
    kinds = [table.schema for table in tables]
    return kinds[0].equals(kinds[1]) and repr(tables[0].to_pylist()) == repr(tables[1].to_pylist())


def damaged_entries(good: Entries) -> Iterator[Attack]:
    """Yield archives with a few bytes of an entry changed, and checksums that agree."""
    for name in sorted(good):
        if name in (archives.SUMS, RECORD):
            continue
        seed = random.Random(name).randrange(10**6)
        for number, content in enumerate(damages(good[name], 3, seed)):
            if name.endswith(".parquet") and _reads_the_same(good[name], content):
                continue  # a byte that no reader of the table looks at is no lie
            same = CELLS if name == CELLS else ""
            yield Attack(
                "damage",
                f"{name} {number}",
                "grid",
                lambda e, n=name, c=content: e.update({n: c}),
                UNREAD.get(name, same),
            )
