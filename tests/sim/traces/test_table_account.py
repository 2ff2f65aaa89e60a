"""The account of a table: its log's amounts equal a count of the file's text."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base.errors import InputError
from sim.check.account import check_account
from tests.examples import examples
from tests.sim.traces.tables import read_csv

ZERO_S = 1_000_000
UNKNOWN = ("", "-", "unknown", "N/A")
TIME = st.one_of(
    st.integers(ZERO_S, ZERO_S + 5000).map(str),
    st.sampled_from((*UNKNOWN, "soon", f"{ZERO_S}.25")),
)
VALUES = {
    "job_id": st.sampled_from(("a", "b", "c", "d", "")),
    "submit_s": TIME,
    "start_s": TIME,
    "end_s": TIME,
    "run_s": st.sampled_from((*UNKNOWN, "0", "30", "60.5", "90", "0:02:00", "-1", "x")),
    "cpus": st.sampled_from((*UNKNOWN, "0", "1", "3", "8", "1.5", "-1", "many")),
    "gpus": st.sampled_from((*UNKNOWN, "0", "2", "5", "0.5", "x")),
    "mem": st.sampled_from((*UNKNOWN, "0", "4", "1.5", "512M", "x")),
    "nodes": st.sampled_from((*UNKNOWN, "0", "1", "2", "4", "1.5")),
    "workers": st.sampled_from((*UNKNOWN, "0", "1", "3", "x")),
    "state": st.sampled_from(("COMPLETED", "FAILED", "CANCELLED", "RUNNING", "PENDING", "")),
    "depends_on": st.sampled_from(("", "", "a", "b;c", "afterok:a:zz", "none")),
    "user": st.sampled_from(("ann", "bob", "")),
}
NUMBERS = ("submit_s", "start_s", "end_s", "run_s", "cpus", "gpus", "mem", "nodes", "workers")
MORE = ("job_id", "cpus", "gpus", "mem", "nodes", "workers", "state", "depends_on", "user")


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Draw columns and rows, some repeated, cut off or too long."""
    ran = draw(st.sampled_from((
        ["start_s", "end_s"], ["run_s"], ["start_s", "run_s"], ["start_s", "end_s", "run_s"],
    )))  # fmt: skip
    columns = ["submit_s", *ran, *draw(st.lists(st.sampled_from(MORE), unique=True))]
    columns = draw(st.permutations(columns))
    rows = draw(st.lists(st.tuples(*(VALUES[c] for c in columns)), min_size=1, max_size=12))
    rows += draw(st.lists(st.sampled_from(rows), max_size=3))
    lines = [list(row) for row in rows]
    for position in draw(st.lists(st.integers(0, len(lines) - 1), max_size=3)):
        size = draw(st.integers(1, len(columns) + 2))
        lines[position] = [*lines[position], "1", "1"][:size]
    return columns, [line for line in lines if any(line)]


def number(text: str) -> float | None:
    """Return the number in a value; None if it has none that is valid."""
    if text.endswith("M"):
        return float(text[:-1]) / 1024
    if ":" in text:
        h, m, s = map(float, text.split(":"))
        return h * 3600 + m * 60 + s
    try:
        return float(text)
    except ValueError:
        return None


def count(columns: list[str], rows: list[list[str]], tasks: str | None) -> dict[str, float]:
    """Count a table's amounts, a value after the other."""
    total = dict.fromkeys(("cpu_s", "gpu_s", "mem_gib_s", "jobs", "edges"), 0.0)
    for fields in rows:
        total["jobs"] += 1
        if len(fields) > len(columns):
            continue
        read = fields if len(fields) == len(columns) else fields[:-1]
        row = dict(zip(columns, read, strict=False))
        value = {c: number(text) for c, text in row.items() if c in NUMBERS}
        for column in ("run_s", "cpus", "gpus", "mem", "workers", "nodes"):
            if (value.get(column) or 0) < 0:
                value[column] = None
        total["edges"] += len([x for x in row.get("depends_on", "").replace("afterok", "")
                               .replace("none", "").replace(":", ";").split(";") if x])  # fmt: skip
        run_s = value.get("run_s")
        if None not in (value.get("start_s"), value.get("end_s")):
            between_s = value["end_s"] - value["start_s"]
            if run_s is None or (between_s >= 0 and abs(run_s - between_s) > 1):
                run_s = between_s  # a run time that contradicts it is a change of the reader's
        if run_s is None or run_s < 0:
            continue
        if run_s == 0 and "start_s" in columns and value.get("start_s") is None:
            continue
        workers = value.get("workers")
        run_s *= 1 if workers is None else workers
        has_cpus = "cpus" in columns
        cpus = value.get("cpus") if has_cpus else float(tasks == "cpus" or "gpus" not in columns)
        total["cpu_s"] += (cpus or 0) * run_s
        total["gpu_s"] += (value.get("gpus") or 0) * run_s
        total["mem_gib_s"] += (value.get("mem") or 0) * run_s
    return total


@settings(max_examples=examples(300), deadline=None)
@given(tables(), st.sampled_from((None, "cpus", "job")))
def test_the_log_is_the_sum_of_the_files_rows(
    table: tuple[list[str], list[list[str]]], tasks: str | None
) -> None:
    columns, rows = table
    text = "\n".join(",".join(line) for line in [columns, *rows]) + "\n"
    expected = count(columns, rows, tasks)
    with tempfile.TemporaryDirectory() as folder:
        try:
            w = read_csv(Path(folder), text, on_bad_row="skip", tasks=tasks)
        except InputError as error:
            if error.rule not in ("no job left", "empty file"):
                raise
            return
    account = check_account(w)
    for kind, amount in expected.items():
        if kind in account:
            assert abs(account[kind]["log"] - amount) <= 1e-9 * max(amount, 1.0), kind
    present = {"cpu_s": True, "gpu_s": "gpus" in columns, "mem_gib_s": "mem" in columns}
    for kind in (kind for kind, is_there in present.items() if is_there):
        assert kind in account or (kind == "cpu_s" and expected[kind] == 0)
