"""Accounts of generated and damaged logs of Slurm, against a plain count of their text."""

from __future__ import annotations

import re
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.base.errors import InputError
from sim.check.account import check_account
from tests.examples import examples

COLUMNS = (
    "JobID", "Cluster", "User", "JobName", "Submit", "Eligible", "Start", "End", "Elapsed",
    "Timelimit", "State", "NNodes", "AllocCPUS", "AllocTRES",
)  # fmt: skip
NOT_ENDED = ("RUNNING", "PENDING")
ZERO = datetime(2026, 3, 2, 8)
KEYS = {
    "JobId": "JobID", "UserId": "User", "Name": "JobName", "JobState": "State",
    "StartTime": "Start", "EndTime": "End", "NodeCnt": "NNodes", "ProcCnt": "AllocCPUS",
    "Tres": "AllocTRES", "Cluster": "Cluster", "SubmitTime": "Submit", "EligibleTime": "Eligible",
}  # fmt: skip
"""Fields of jobcomp/filetxt, and the columns of sacct that they are."""

times = st.one_of(st.none(), st.sampled_from(["Unknown", "unknown", "None"]))
records = st.fixed_dictionaries(
    {
        "JobID": st.sampled_from(["1", "2", "3", "4_1", "4_2", "5+0", "5+1", "1.batch", "4_1.0"]),
        "Cluster": st.sampled_from(["a", "a", "b"]),
        "User": st.sampled_from(["ann", "bob"]),
        "JobName": st.just("x"),
        "Timelimit": st.sampled_from(["00:10:00", "0", "UNLIMITED", ""]),
        "State": st.sampled_from(
            ["COMPLETED", "FAILED", "REQUEUED", "PREEMPTED", "NODE_FAIL", "RESIZING", "RUNNING",
             "CANCELLED by 7", "PENDING"]
        ),
        "NNodes": st.sampled_from(["1", "3", "0", ""]),
        "AllocCPUS": st.sampled_from(["1", "4", "10", "0", ""]),
        "gpus": st.integers(0, 5),
        "models": st.booleans(),
        "mem": st.sampled_from(["", "mem=6G", "mem=512M"]),
        "submit_s": st.integers(0, 3).map(lambda n: 600 * n),
        "wait_s": st.sampled_from([0, 10, 700]),
        "run_s": st.sampled_from([0, 60, 400, -1000, -5000]),
        "elapsed": st.booleans(),
        "unknown": st.sets(st.sampled_from(["Submit", "Start", "End"]), max_size=1),
        "word": st.sampled_from(["Unknown", "unknown", "None"]),
    }
)  # fmt: skip
damages = st.sampled_from([None, None, None, "cut", "repeat", "AllocCPUS", "Start", "Submit"])
logs = st.lists(st.tuples(records, damages), min_size=1, max_size=12)


def text_time(seconds):
    return (ZERO + timedelta(seconds=seconds)).isoformat()


def row(record, has_elapsed):
    """Return the texts of a record by column."""
    start_s = record["submit_s"] + record["wait_s"]
    gpus = record["gpus"]
    model = f"gres/gpu:a100={gpus}" if record["models"] else f"gres/gpu={gpus}"
    tres = [record["mem"], model if gpus else "", "billing=3"]
    row = {
        **{name: record[name] for name in COLUMNS if name in record},
        "Submit": text_time(record["submit_s"]),
        "Eligible": text_time(record["submit_s"] + 5),
        "Start": text_time(start_s),
        "End": text_time(start_s + record["run_s"]),
        "Elapsed": f"00:00:{abs(record['run_s']) % 60:02}" if record["elapsed"] else "",
        "AllocTRES": ",".join(filter(None, tres)),
    }
    row |= dict.fromkeys(record["unknown"], record["word"])
    if record["State"] == "PENDING":
        row |= {"Start": record["word"], "End": record["word"], "Elapsed": ""}
    if not has_elapsed:
        del row["Elapsed"]
    return row


def damaged(fields, damage, names):
    if damage in names:
        fields = [*fields]
        fields[names.index(damage)] = "x"
    return fields[: len(fields) // 2] if damage == "cut" else fields


def seconds(text):
    try:
        return (datetime.fromisoformat(text) - ZERO).total_seconds()
    except (TypeError, ValueError):
        return None


def whole(text):
    return int(text) if text and re.fullmatch(r"\d+", text) and int(text) > 0 else None


def work(row):
    """Return CPU, GPU and memory × time of a row, 0 where its text does not tell."""
    start_s, end_s = seconds(row.get("Start")), seconds(row.get("End"))
    match = re.fullmatch(r"00:00:(\d\d)", row.get("Elapsed") or "")
    run_s = None
    if match:
        run_s = int(match[1])
    elif start_s is not None and end_s is not None:
        run_s = end_s - start_s
        run_s += 3600 if -3600 <= run_s < 0 else 0
    never_ran = start_s is None or row.get("never_ran")
    if run_s is None or run_s < 0 or (never_ran and row["is_valid"]):
        return 0.0, 0.0, 0.0
    tres = row.get("AllocTRES") or ""
    gpus = sum(int(n) for n in re.findall(r"gres/gpu[^=]*=(\d+)", tres))
    mem = re.search(r"mem=(\d+)([GM])", tres)
    gib = int(mem[1]) / {"G": 1, "M": 1024}[mem[2]] if mem else 0.0
    return (whole(row.get("AllocCPUS")) or 0) * run_s, gpus * run_s, gib * run_s


def count(rows):
    """Return the work of a log's records: each once, as the last row shows it; steps are none."""
    rows = [row for row in rows if "." not in row["JobID"]]
    valid = [row for row in rows if row["is_valid"]]
    distinct = [row for i, row in enumerate(valid) if row not in valid[:i]]
    counted = []
    for i, row in enumerate(distinct):
        same = [o for o in distinct if all(o[k] == row[k] for k in ("JobID", "Cluster"))]
        same = [o for o in same if seconds(o["Submit"]) == seconds(row["Submit"])]
        if seconds(row["Submit"]) is None:
            same = [row]
        ended = any(o["State"] not in NOT_ENDED for o in same)
        later = any(o in same for o in distinct[i + 1 :])
        if row["State"] in NOT_ENDED and (ended or later):
            continue
        counted.append(row)
    counted += [row for row in rows if not row["is_valid"]]
    return [sum(column) for column in zip(*map(work, counted), strict=True)] or [0.0] * 3


def check(reader, lines, rows, tasks):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.txt"
        file.write_text("\n".join(lines) + "\n")
        try:
            w = sim.read_trace(reader, file, on_bad_row="skip", tasks=tasks)
        except InputError as error:
            refused = error
        else:
            refused = None
    if refused is not None:
        assert refused.rule in ("no job left", "empty file", "missing value")
        return
    cpu_s, gpu_s, mem_gib_s = count(rows)
    account = check_account(w, cpu_s=cpu_s)
    for kind, amount in (("gpu_s", gpu_s), ("mem_gib_s", mem_gib_s)):
        assert account.get(kind, {"log": 0.0})["log"] == pytest.approx(amount)


@settings(max_examples=examples(200), deadline=None)
@given(logs, st.booleans(), st.sampled_from(["cpus", "nodes"]))
def test_accounts_of_sacct(log, has_elapsed, tasks):
    names = [name for name in COLUMNS if has_elapsed or name != "Elapsed"]
    lines, rows = ["|".join(names)], []
    for record, damage in log:
        texts = row(record, has_elapsed)
        fields = damaged([texts[name] for name in names], damage, names)
        shown = fields[:-1] if damage == "cut" else fields
        parsed = dict(zip(names, shown, strict=False)) | {
            "is_valid": damage in (None, "repeat") or damage not in ("cut", *names)
        }
        for _ in range(2 if damage == "repeat" else 1):
            lines.append("|".join(fields))
            rows.append(parsed)
    check("sacct", lines, rows, tasks)


@settings(max_examples=examples(200), deadline=None)
@given(logs, st.sampled_from(["cpus", "nodes"]))
def test_accounts_of_jobcomp(log, tasks):
    lines, rows = [], []
    for record, damage in log:
        texts = row(record, has_elapsed=False)
        texts["JobID"] = re.sub(r"\D.*", "", texts["JobID"])
        names = [*KEYS.values()]
        fields = damaged([texts[name] for name in names], damage, names)
        is_valid = damage in (None, "repeat")
        parsed = dict(zip(names, fields, strict=False)) | {"is_valid": is_valid}
        if parsed.get("NNodes") == "0":
            parsed["Start"] = "Unknown"
        if parsed.get("AllocCPUS") == "0" and parsed["State"].startswith("CANCELLED"):
            parsed["never_ran"] = True  # its resources are those asked for
        for _ in range(2 if damage == "repeat" else 1):
            pairs = zip(KEYS, fields, strict=False)
            lines.append(" ".join(f"{key}={text}" for key, text in pairs) + " ")
            rows.append(parsed)
    check("slurm_jobcomp", lines, rows, tasks)
