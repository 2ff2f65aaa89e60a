"""Fuzz targets: all readers of external input, with small invented samples.

For any bytes, a reader returns its result or raises an `InputError`, which names the file if there
is one; any other outcome is a fault.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sim
from policies.slearn.recurring import tables as recurring
from policies.slearn.recurring.fit import fit
from policies.wing.bqetl.files import EDGES, JOBS
from policies.wing.lineage import read_logs
from policies.wing.lineage.openlineage import read_events
from policies.wing.programs import file
from sim.base.errors import InputError
from sim.synth.fitted.fit import fit_workload
from sim.synth.fitted.tables_file import read_tables, write_tables
from sim.traces.kueue_site import site as kueue_site
from sweep.driver import make_request
from sweep.execution.rerun import recorded_cell
from sweep.grid import grid
from sweep.grid.options import Options
from sweep.grid.overrides import parse, quote
from sweep.questions.archive import archive
from sweep.stats.cell_columns import ERROR
from sweep.store import shards, zip_files
from sweep.store.cache import Cache
from sweep.store.folder import CELLS, HTML, MARKDOWN, TABLE, VERDICT, SweepFolder
from sweep.store.journal import Journal
from tests.sim.traces.kubernetes_objects import CLUSTER, WORKFLOW
from tests.sim.traces.spark_events import end, job, job_end, profile, stage, task, text, two_stages
from tests.sim.traces.test_kueue_site import JOBS as KUEUE_JOBS
from tests.sim.traces.test_kueue_site import SITE as KUEUE
from tests.sim.traces.test_ray import actor, seven
from tests.sim.traces.test_ray import task as task_of_ray
from tests.sim.traces.test_slurm_site import FILES as SITE_FILES
from tests.sim.traces.test_table_public import EVENTS, PAI, attempt, philly
from tests.sweep.small import keys_kept

BETWEEN = b"\x1e"
"""Separator of the files of a reader that takes two."""


@dataclass(frozen=True)
class Target:
    """A reader with samples.

    Attributes
    ----------
    read : callable
        Function of bytes and a folder to write them to.
    samples : tuple of bytes
        Inputs that it reads without an error.
    names_file : bool
        True if its errors name the file.
    """

    read: Callable[[bytes, Path], object]
    samples: tuple[bytes, ...]
    names_file: bool = True


def check(target: Target, content: bytes, folder: Path) -> str:
    """Run a reader; return ``read`` or ``refused``; other exceptions pass."""
    try:
        target.read(content, folder)
    except InputError as error:
        if target.names_file and error.file is None:
            raise AssertionError(f"the error names no file: {error}") from error
        return "refused"
    return "read"


def _trace(name: str, **options: object) -> Callable[[bytes, Path], object]:
    def read(content: bytes, folder: Path) -> object:
        file = folder / "trace"
        file.write_bytes(content)
        return sim.read_trace(name, file, **options)

    return read


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def _fitted(
    read: Callable[[Path], object], write: Callable[[Any, Path], None], fit: Callable[..., Any]
) -> Target:
    """Return the target of a generator's fit; the sample is fitted to a few recurring jobs."""

    def read_again(content: bytes, folder: Path) -> object:
        (folder / "fitted.json").write_bytes(content)
        return read(folder / "fitted.json")

    jobs = [
        {
            "submit_s": 60.0 * i,
            "application": f"a{i % 3}",
            "user": "u",
            "stages": [{"durations_s": [5.0 + 90.0 * i] * (1 + i % 4)}],
        }
        for i in range(70)
    ]
    past = {
        "submit_s": np.arange(-20.0, 0.0),
        "finish_s": np.arange(20.0),
        "n_tasks": np.full(20, 2, np.int32),
        "mean_task_s": np.linspace(5.0, 900.0, 20),
        "application": [f"a{i % 2}" for i in range(20)],
    }
    workload = sim.Workload.from_jobs(jobs).with_history(past)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "fitted.json"
        write(fit(workload), path)
        return Target(read_again, (path.read_bytes(),))


def _tables(content: bytes, folder: Path) -> object:
    first, _, second = content.partition(BETWEEN)
    (folder / JOBS).write_bytes(first)
    (folder / EDGES).write_bytes(second)
    return sim.read_trace("bqetl", folder, rounds=1)


def _pai(content: bytes, folder: Path) -> object:
    for name, part in zip(PAI, content.split(BETWEEN), strict=False):
        (folder / name).write_bytes(part)
    return sim.read_trace("pai2020", folder)


def _site(content: bytes, folder: Path) -> object:
    for name, part in zip(SITE_FILES, content.split(BETWEEN), strict=False):
        (folder / name).write_bytes(part)
    return sim.read_trace("slurm_site", folder)


def _kueue(content: bytes, folder: Path) -> object:
    (folder / "all.json").write_bytes(content)
    site = kueue_site.read_site(folder)
    kueue_site.with_queue(site, folder, None)
    return sim.read_trace("kueue_site", folder)


def _past(content: bytes, folder: Path) -> object:
    (folder / "x.trace").write_text(json.dumps(_PILOT))
    (folder / "x.3SigmaWarmUp").write_bytes(content)
    return sim.read_trace("slearn_authors", folder)


def _logs(content: bytes, folder: Path) -> object:
    first, _, second = content.partition(BETWEEN)
    (folder / "operations").write_bytes(first)
    (folder / "jobs").write_bytes(second)
    return read_logs(folder / "operations", folder / "jobs")


def _events(content: bytes, folder: Path) -> object:
    (folder / "events").write_bytes(content)
    return read_events(folder / "events")


def _workload(content: bytes, folder: Path) -> object:
    """Read a workload with one file replaced by the bytes; the first byte selects the file."""
    whole = workload_files()
    chosen = sorted(whole)[(content or b"\0")[0] % len(whole)]
    for name in whole:
        (folder / name).write_bytes(content[1:] if name == chosen else whole[name])
    return sim.read_trace("parquet", folder)


@cache
def workload_files() -> dict[str, bytes]:
    """Return the files of a small workload by name."""
    stages = [
        {"name": "map", "durations_s": [3.0, 4.0], "demand": {"cpu": 1, "mem": 2}},
        {
            "name": "reduce",
            "durations_s": [5.0],
            "parents": ["map"],
            "demand": {"cpu": 2, "mem": 0},
        },
    ]
    jobs = [{"submit_s": float(i), "deadline_s": 60.0, "stages": stages} for i in range(3)]
    with tempfile.TemporaryDirectory() as name:
        sim.Workload.from_jobs(jobs).write(name)
        return {file.name: file.read_bytes() for file in Path(name).iterdir() if file.is_file()}


def _overrides(content: bytes, _: Path) -> object:
    words = content.decode(errors="replace").split("\n")
    assignments = parse(words, OPTIONS.names_swept)
    for assignment in assignments:
        is_plain = not assignment.swept and assignment.kind != "delete"
        if is_plain and assignment.value == assignment.value:
            (again,) = parse([quote(assignment.key, assignment.value)], OPTIONS.names_swept)
            assert again.value == assignment.value, assignment.text
    return assignments


def _request(content: bytes, folder: Path) -> object:
    words = [word for word in content.decode(errors="replace").split("\n") if word]
    return grid.build(make_request([*words, f"paths.results='{folder}'"], []))


def _option(content: bytes, folder: Path) -> object:
    (folder / "policy").mkdir(exist_ok=True)
    (folder / "policy" / "fuzzed.yaml").write_bytes(content)
    return grid.build(make_request(["policy=fuzzed", "trace=alibaba_synth"], [str(folder)]))


def _journal(content: bytes, folder: Path) -> object:
    file = folder / "journal" / "s.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    journal = Journal(folder, "s")
    return [*journal.events()], journal.is_complete(), journal.tally()


def _shard(content: bytes, folder: Path) -> object:
    """Read a cell whose shard file has this content."""
    shard, manifest = _sample_shard()
    return _read_cell(folder, shard, content, manifest)


def _manifest(content: bytes, folder: Path) -> object:
    """Read a cell whose manifest file has this content."""
    shard, manifest = _sample_shard()
    return _read_cell(folder, shard, shard, manifest, content)


def _read_cell(
    folder: Path,
    shard: bytes,
    shard_content: bytes,
    manifest: bytes,
    manifest_content: bytes | None = None,
) -> object:
    for name, content in (
        (shards.shard_path(shards.digest_name(shard)), shard_content),
        (
            shards.MANIFESTS + shards.digest_name(manifest),
            manifest if manifest_content is None else manifest_content,
        ),
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    cache = Cache(folder)
    return cache.get(KEY), cache.metrics(KEY), cache.config(KEY), keys_kept(folder)


def _archive(content: bytes, folder: Path) -> object:
    file = folder / "a.zip"
    file.write_bytes(content)
    with archive.opened(file) as opened:
        return [*map(_recorded, opened.folder.cells(["config"])["config"].to_pylist())]


def _archive_record(content: bytes, folder: Path) -> object:
    """Read an archive whose ``archive.json`` has this content."""
    entries = {**_archive_entries(), archive.RECORD: content}
    with (folder / "a.zip").open("wb") as file:
        zip_files.write(file, entries.items())
    with archive.opened(folder / "a.zip") as opened:
        opened.import_from(trust=False)
        return opened.foreign([folder], trust=False)


def _recorded_cell(content: bytes, _: Path) -> object:
    return _recorded(content.decode(errors="replace"))


def _recorded(text: str) -> object:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("no JSON") from error
    return recorded_cell({"policy": "p", "trace": "t", "capacity": 1.0, "seed": 0}, config)


@cache
def _archive_entries() -> dict[str, bytes]:
    """Return the entries of the archive of a sweep of one cell."""
    with tempfile.TemporaryDirectory() as name:
        folder = SweepFolder(Path(name))
        row = {"policy": "p", "trace": "t", "capacity": 1.0, "seed": 0, "status": "done"}
        row |= {"key": KEY, "config": json.dumps(_CELL), "jct_mean_s": 1.0}
        row |= dict.fromkeys((*ERROR, "reproduce"), "")
        config: dict[str, Any] = {key: [] for key in ("words", "config_dirs", "swept", "metrics")}
        config |= dict.fromkeys(("baseline", "study"))
        folder.replace_origin({**config, "sweep": "s-ab"}, {}, "")
        folder.replace(CELLS, pa.Table.from_pylist([row]))
        for part in (TABLE, MARKDOWN, HTML):
            folder.replace_text(part, "")
        folder.replace_json(VERDICT, [])
        folder.commit()
        entries = {
            f"{archive.SWEEP}/{file.name}": file.read_bytes() for file in folder.path.iterdir()
        }
    entries |= {f"{archive.OWN}/m.py": b"", f"{archive.TRACES}/0/t.csv": b"1\n"}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in entries.items()}
    files = [["t.csv", digests[f"{archive.TRACES}/0/t.csv"], 2]]
    trace = {"text": "in/t.csv", "name": "t.csv", "is_folder": False, "files": files}
    record = {"format": 1, "sweep": "s-ab", "entries": digests, "modules": {}, "traces": [trace]}
    return {**entries, archive.RECORD: json.dumps(record).encode()}


def _archive_sample() -> bytes:
    file = io.BytesIO()
    zip_files.write(file, _archive_entries().items())
    return file.getvalue()


_CELL = {
    "policy": {"name": "las", "module": None, "params": {"queues": 5}},
    "trace": {"synth": "alibaba2018", "jobs": 5, "transforms": {"change_load": {"load": 1.3}}},
    "cluster": {"shape": {"cpu": 16.0}, "count": 2, "load": 0.8},
    "evaluator": {"name": "simulation"},
}
KEY = "ab" + "0" * 62
OPTIONS = Options()
_LINE = "1 10 5 60 4 30 100 8 100 200 1 3 1 5 2 -1 -1 -1"
_JOB = {
    **{"job": "7", "user": 3, "lname": 11, "name": 21, "sched_class": 0, "priority": 2},
    **{"cpu": 0.0125, "mem": 0.5, "disk": 0.0001, "submit_s": 9.0, "job_end_event": 4},
    **{"job_end_s": 20.0, "start_s": [10.0, 12.0], "dur_s": [5.0, 8.0]},
}
_PILOT = {"job.id": "job_7", "job.start.ms": 5, "job.tasks": [{"c.dur": 2000}, {"c.dur": 9}]}
_WAVES = {
    "first_wave": {"2": [4000, 2000], "4": [1000]},
    "rest_wave": {"2": [1000], "4": [500]},
    "fresh_durations": {"2": [], "4": [900]},
}
_SPARK = {"2g": {"1": {"adj": [[0, 1], [0, 0]], "dur": {"0": _WAVES, "1": _WAVES}}}}
_WORKFLOW = {
    "name": "w", "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"id": "a_ID1", "name": "a_ID1", "parents": [], "outputFiles": ["f"]},
                {"id": "b", "name": "b", "parents": ["a_ID1"], "inputFiles": ["f", "in"],
                 "outputFiles": ["g"]},
            ],
            "files": [{"id": "f", "sizeInBytes": 10}],
        },
        "execution": {
            "tasks": [
                {"id": "b", "runtimeInSeconds": 2, "avgCPU": 150.0, "memoryInBytes": 1e9},
                {"id": "a_ID1", "runtimeInSeconds": 1.5, "coreCount": 2},
            ]
        },
    },
}  # fmt: skip
_EVENT = {
    "eventType": "START",
    "eventTime": "2024-01-01T00:00:00Z",
    "run": {"runId": "r1"},
    "job": {"namespace": "team", "name": "load", "facets": {"sql": {"query": "copy t"}}},
    "inputs": [{"namespace": "db", "name": "t"}],
    "outputs": [],
}


@cache
def _sample_shard() -> tuple[bytes, bytes]:
    table = pa.table({"finish_s": np.array([1.0, 2.0])})
    metrics = {"jct_mean_s": 1.0, "nothing": math.nan}
    return shards.encode([shards.to_row(KEY, '{"seed": 0}', table, metrics)])


def _lines(*rows: object) -> bytes:
    return b"".join((r if isinstance(r, str) else json.dumps(r)).encode() + b"\n" for r in rows)


_SPARK_EVENTS = text(
    profile(0, 1.0, 4, memory=4096),
    *two_stages()[:-1],
    job(1, stage(2, 1, rdds=[0]), stage(3, 1, [2]), at_ms=6500, spark_sql_execution_id="7"),
    task(3, 0, 7000, 8000, "ExceptionFailure"),
    task(3, 0, 8000, 9000, speculative=True),
    task(3, 0, 7000, 9001, "TaskKilled"),
    job_end(1, 9000),
    end(),
).encode()

_RAY_TASKS = [
    *seven(),
    task_of_ray(7, required_resources={"CPU": 1.0, "memory": 1e9}, parent_task_id=f"{1:032x}")
    | {"end_time_ms": "2025-03-03 01:00:12.600000"},
    actor(8, "Model.__init__", 0, 100, 200, kind="ACTOR_CREATION_TASK"),
    actor(9, "Model.score", 150, 200, 1200),
]

TARGETS: dict[str, Target] = {
    "alibaba2018": Target(
        _trace("alibaba2018"),
        (
            _lines(
                "task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem",
                "M1,2,j_1,Terminated,100,110,100.0,0.5",
                "R2_1,1,j_1,Terminated,110,120,50,0.25",
            ),
            _lines("M1,2,j_1,1,Terminated,100,110,100.0,0.5"),
        ),
    ),
    "google2011": Target(_trace("google2011"), (_lines(_JOB, {**_JOB, "job": "8"}),)),
    "google2011_walls": Target(
        _trace("google2011", part="walls"),
        (
            _lines(
                "job_id,user,sched_class,job_name,logical_job_name,submit_s,schedule_s,end_s,"
                "end_event",
                "1,0,1,10,20,1.0,2.0,700.0,4",
                "2,0,1,10,20,0.0,605.0,700.0,4",
            ),
        ),
    ),
    "slearn_authors": Target(
        _trace("slearn_authors"),
        (json.dumps(_PILOT).encode() + b"\n" + json.dumps({**_PILOT, "job.id": "job_8"}).encode(),),
    ),
    "slearn_authors_past": Target(
        _past,
        (
            _lines(
                "job_id,application_name,day_of_the_week,hour_of_the_day,job_name,"
                "resource_requested,user_name,job_runtime",
                "7,a,1,13,n,1:2,ann,2500",
            ),
        ),
    ),
    "swf": Target(
        _trace("swf"), (_lines("; MaxProcs: 128", _LINE, _LINE.replace("1 10", "2 20")),)
    ),
    "sacct": Target(
        _trace("sacct", tasks="nodes"),
        (
            _lines(
                "JobID|Submit|Start|End|Timelimit|State|AllocCPUS|ReqMem|AllocTRES",
                "7|2026-03-01T09:30:00|2026-03-01T09:30:10|2026-03-01T09:40:00|1-02:00:00|"
                "COMPLETED|8|4Gn|cpu=8,gres/gpu=2,mem=8G,node=2",
                "7.0|2026-03-01T09:30:10|2026-03-01T09:30:10|2026-03-01T09:40:00||COMPLETED|8||",
                "8_1|100|200|300|UNLIMITED|CANCELLED by 5|1|100Mc|",
            ),
        ),
    ),
    "slurm_jobcomp": Target(
        _trace("slurm_jobcomp", tasks="nodes"),
        (
            _lines(
                "JobId=7 UserId=ann(10) GroupId=lab(7) Name=a JobState=COMPLETED Partition=p "
                "TimeLimit=20 StartTime=2026-03-01T09:30:10 EndTime=2026-03-01T09:40:00 "
                "NodeList=n[1-2] NodeCnt=2 ProcCnt=8 WorkDir=/ Tres=cpu=8,mem=8G,node=2 Account= "
                "QOS= SubmitTime=2026-03-01T09:30:00 EligibleTime=2026-03-01T09:30:00 "
                "ArrayJobId=7 ArrayTaskId=1 DerivedExitCode=0:0 ExitCode=0:0 ",
                "JobId=8 SubmitTime=100 StartTime=200 EndTime=300 TimeLimit=UNLIMITED ",
            ),
        ),
    ),
    "table": Target(
        _trace("table"),
        (
            _lines(
                "job_id,submit_s,start_s,end_s,cpus,limit_s,user,queue,priority,other",
                "a,2026-03-01 09:30:00,2026-03-01T09:30:10.5,2026-03-01 10:31:00,4,1:00:00,"
                'ann,"q,1",-1.5,x',
                "b,2026-03-01,2026-03-02,2026-03-03 10:31,,3600,,,,",
            ),
            _lines(
                "job_id,submit_s,eligible_s,start_s,end_s,run_s,cpus,gpus,gpu_type,mem,nodes,state,"
                "account,partition,qos,depends_on,parent_id",
                "a,2026-03-01 09:30:00Z,2026-03-01 09:30:00+00,2026-03-01 09:30:10 CET,"
                "2026/03/01 09:31:00 UTC,21m 20s,10,5,A100|H100,40G,4,COMPLETED,phys,gpu,high,,",
                "b,2026-03-01T09:30:00+01:00,,2026-03-01 09:31:00Z,2026-03-01 09:40:00Z,-,1.5,0,,"
                '4000M,unknown,CANCELLED by 7,,,,"afterok:a:b, c",a',
            ),
            _lines(
                "submit_s;run_s;workers;cpus;note",
                "5;60;3;2;",
                "7.5;1-00:00:00;-;1.5;",
                '8;0:00:01;1;1;"a\nb"',
            ),
            _parquet(
                {"submit_s": [5, 7], "run_s": [60.0, None], "cpus": [1, 2], "end_s": [99, 100]}
            ),
            _parquet({"submit_s": ["2026-03-01 09:30:00"], "run_s": ["0:01:00"], "user": ["ann"]}),
            _lines(
                "job_id,part_of,submit_s,run_s,wait_s,cpus,workers,depends_on",
                *("a,w1,5,60,1,1,1,", "b,w1,6,60,,2,3,a", "c,w1,6,50,,2,3,a", "d,w2,7,9,0,1,1,w1"),
            ),
        ),
    ),
    "k8s_gpu2023": Target(
        _trace("k8s_gpu2023"),
        (
            _lines(
                "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
                "deletion_time,scheduled_time",
                "a,12000,16384,1,460,,LS,Running,0,12537,5",
                "b,6000,12288,2,1000,T4|P100,BE,Succeeded,20,90,30.5",
                "c,1000,0,0,0,,,Pending,20,90,",
            ),
        ),
    ),
    "kubernetes": Target(
        _trace("kubernetes"),
        (
            json.dumps({"kind": "List", "apiVersion": "v1", "items": CLUSTER}).encode(),
            _lines(*CLUSTER),
        ),
    ),
    "philly": Target(
        _trace("philly"),
        (
            json.dumps(
                [
                    philly("a", "Pass", attempt("01:00:30", "01:01:30", 8)),
                    philly("b", "Killed", attempt("01:02:00", "01:03:00", 8, 8), attempt("", None)),
                    philly("c", "Failed", *[attempt("01:02:00", "01:03:00", 1)] * 2),
                ]
            ).encode(),
        ),
    ),
    "pai2020": Target(_pai, (BETWEEN.join(text.encode() for text in PAI.values()),)),
    "google2019": Target(
        _trace("google2019"),
        (
            _lines(*EVENTS),
            _lines(
                "time,type,collection_id,priority,instance_index,resource_request.cpus",
                "0,0,7,200,0,0.125",
                "5000000,3,7,200,0,0.125",
                "9000000,6,7,200,0,0.25",
            ),
            _parquet(
                {
                    "time": [0, 5, 9000000],
                    "type": [0, 3, 6],
                    "collection_id": [7, 7, 7],
                    "instance_index": [0, 0, 0],
                    "resource_request": [{"cpus": 0.5, "memory": 0.5}] * 3,
                }
            ),
        ),
    ),
    "argo": Target(_trace("argo"), (json.dumps(WORKFLOW, indent=1).encode(),)),
    "ray": Target(
        _trace("ray"),
        (
            json.dumps(_RAY_TASKS).encode(),
            json.dumps({"data": {"result": {"total": 9, "result": _RAY_TASKS}}}).encode(),
        ),
    ),
    "spark_eventlog": Target(
        _trace("spark_eventlog", read_as="queries"), (_SPARK_EVENTS, gzip.compress(_SPARK_EVENTS))
    ),
    "tpc": Target(
        _trace("tpc"),
        (
            _lines(
                *("# 3: TPC-H query10", "2 0 7.5", "Map1 11 0.2 0.2 0 0 0 0.2 4"),
                *("Reducer2 1.5 0.1 0.1 0 0 0 0.1 3", "1", "Map1 Reducer2 ata"),
            ),
        ),
    ),
    "spark_tpch": Target(
        _trace("spark_tpch", executors=4, trained_at=2), (json.dumps(_SPARK).encode(),)
    ),
    "wfcommons": Target(_trace("wfcommons"), (json.dumps(_WORKFLOW).encode(),)),
    "wfcommons, logs": Target(
        _trace("wfcommons", read_as="logs", copies=1), (json.dumps(_WORKFLOW).encode(),)
    ),
    "kueue_site": Target(
        _kueue,
        (json.dumps({"kind": "List", "items": [*KUEUE, *KUEUE_JOBS]}).encode(),),
    ),
    "slurm_site": Target(_site, (BETWEEN.join(SITE_FILES[name].encode() for name in SITE_FILES),)),
    "bqetl": Target(
        _tables,
        (
            _lines(
                "job,dag,schedule_interval,dag_start_date,impact_tier,owner_id",
                "load,early,0 2 * * *,2026-08-11,impact/tier_1,0",
                "sum,late,0 12 * * 1,2020-01-01,impact/tier_3,1",
            )
            + BETWEEN
            + _lines("producer_job,consumer_job", "load,sum"),
        ),
    ),
    "parquet": Target(
        _workload,
        tuple(
            bytes([position]) + content
            for position, (_, content) in enumerate(sorted(workload_files().items()))
        ),
    ),
    "lineage": Target(
        _logs,
        (
            _lines("time_s,job,operation,file,n", "1,a,write,f,1", "2.5,b,read,f,")
            + BETWEEN
            + _lines("job_id,template_name,queue,submit_s,finish_s", "b,tb,o/x,1.5,3", "a,t,l,0,1"),
        ),
    ),
    "openlineage": Target(
        _events,
        (
            _lines(
                _EVENT, {**_EVENT, "eventType": "COMPLETE", "eventTime": "2024-01-01T00:05:00Z"}
            ),
            json.dumps([_EVENT]).encode(),
        ),
    ),
    "overrides": Target(
        _overrides,
        (
            b"policy=fifo,sjf\nseed=range(0,5)\ncapacity=0.5,1.0",
            b"trace=glob(ali*)\n~policy.x\n+policy.y={a:1,b:[2,'c,d']}\n++trace.path=\"a b\"",
        ),
        names_file=False,
    ),
    "request": Target(
        _request,
        (
            b"policy=fifo,las\npolicy.queues=5\ntrace=alibaba_synth\nseed=range(0,3)\nbaseline=fifo",
            b"capacity=choice(0.5,1)\ncluster=slots\nmetrics=[jct_mean_s]\nmax_failures=2",
        ),
        names_file=False,
    ),
    "option": Target(
        _option, (b"# Mine.\nname: fifo\n", b"name: las\nqueues: 5\n"), names_file=False
    ),
    "journal": Target(
        _journal,
        (
            _lines(
                {"event": "begin", "time": 1.0, "pid": 1, "cells": 1, "todo": 1, "cached": []},
                {"event": "cell", "time": 2.0, "row": 0, "key": KEY, "seconds": 0.1},
                {"event": "end", "time": 3.0, "failed": 0},
            ),
        ),
    ),
    "fitted": _fitted(read_tables, write_tables, fit_workload),
    "programs": _fitted(file.read, file.write, file.fit),
    "recurring": _fitted(recurring.read_tables, recurring.write_tables, lambda w: fit(w, 150)),
    "archive": Target(_archive, (_archive_sample(),)),
    "archive record": Target(_archive_record, (_archive_entries()[archive.RECORD],)),
    "recorded cell": Target(_recorded_cell, (json.dumps(_CELL).encode(),), names_file=False),
    "shard": Target(_shard, _sample_shard()[:1]),
    "manifest": Target(_manifest, _sample_shard()[1:]),
}
"""All targets by name."""
TARGETS |= {
    file.stem: Target(_trace(file.stem), (file.read_bytes(),))
    for file in sorted((Path(__file__).parent / "samples").glob("*"))
}
TARGETS |= {
    f"{name}, skipping": replace(TARGETS[name], read=_trace(name, on_bad_row="skip"))
    for name in sim.traces.names()
    if name in TARGETS  # test_every_trace_format_has_a_target names a new one
    and "on_bad_row" in sim.traces.options(name)
    and name not in ("bqetl", "pai2020", "slurm_site")  # folders
}
