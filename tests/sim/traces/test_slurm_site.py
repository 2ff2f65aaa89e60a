"""Sites of Slurm: configuration, limits and accounting of one folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.cli.main import main
from sim.traces import cluster_of
from sim.traces.sites.pseudonyms import Pseudonyms
from sim.traces.slurm_site import folder as site_files
from sim.traces.slurm_site.hosts import expand
from sim.traces.slurm_site.jobs import satisfies
from sim.traces.slurm_site.site import read_site
from sim.traces.slurm_site.slurm_conf import read_records, read_slurm_conf

CONF = """
# a site by hand
clustername=lab
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_window=120,bf_interval=60,bf_min_age_reserve=60,bf_continue
PriorityWeightAge=1000
PriorityWeightQOS=500
PriorityMaxAge=1-0
PriorityFlags=NO_FAIR_TREE,MAX_TRES
AccountingStorageEnforce=associations,limits,qos
SlurmdTimeout=300
Licenses=matlab:4
NodeName=DEFAULT CPUs=4 RealMemory=8192 Weight=10
Include nodes.conf
NodeSet=fast Feature=avx
PartitionName=DEFAULT MaxTime=1:00:00
PartitionName=batch Nodes=n[1-2],big Default=YES \\
    DefaultTime=10
PartitionName=quick Nodes=fast MaxTime=5 PriorityTier=3 QOS=quick OverSubscribe=EXCLUSIVE MaxNodes=1
PartitionName=gpu Nodes=g1
"""
NODES = """
NodeName=n[1-2] Feature=avx Weight=1
NodeName=big CPUs=16 RealMemory=65536 TmpDisk=100
NodeName=g1 Gres=gpu:a100:2 Feature=gpu,avx
"""
QOS = """Name|Priority|Preempt|PreemptMode|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU
normal|0|||||cpu=8,gres/gpu=1|
high|10|normal|cancel|||billing=5|
quick|0|||cpu=4|||1
"""
ASSOC = """Account|User|Par Name|Share|GrpTRES|MaxJobs|MaxSubmit|MaxWall
root|||1||||
lab||root|30|mem=16G,node=2|3||
sub||lab|10||||1-00:00:00
sub|ann||2|||50|
sub|bob||parent||1||
"""
HEADER = (
    "JobID|User|Account|Partition|QOS|Submit|Start|End|Timelimit|State|AllocCPUS|ReqCPUS|NNodes|"
    "AllocTRES|ReqTRES|NodeList|Constraints|Reservation|SubmitLine"
)
RESERVATION = """ReservationName=mend StartTime=2026-03-01T10:00:00 EndTime=2026-03-01T11:00:00
   Nodes=big,g1 NodeCnt=2 CoreCnt=20 PartitionName=(null) Flags=MAINT,SPEC_NODES
   Users=root Accounts=(null) State=INACTIVE
"""
LOG = """[2026-03-01T09:10:00.000] update_node: node n2 state set to DRAINING
[2026-03-01T09:20:00.000] sched: Created reservation=mend users=root nodes=big,g1 cores=20
[2026-03-01T09:40:00.000] update_node: node n2 state set to IDLE
"""


def row(job, **changed):
    values = {
        "JobID": job, "User": "ann", "Account": "sub", "Partition": "batch", "QOS": "normal",
        "Submit": "2026-03-01T09:00:00", "Start": "2026-03-01T09:00:00",
        "End": "2026-03-01T09:01:00", "Timelimit": "00:05:00", "State": "COMPLETED",
        "AllocCPUS": 2, "ReqCPUS": 2, "NNodes": 1, "AllocTRES": "cpu=2,mem=1G,node=1",
        "ReqTRES": "cpu=2,mem=1G,node=1", "NodeList": "n1", "Constraints": "", "Reservation": "",
        "SubmitLine": "sbatch job.sh", **changed,
    }  # fmt: skip
    return "|".join(str(values[name]) for name in HEADER.split("|"))


ROWS = (
    row(1),
    row(2, SubmitLine="sbatch -p quick,batch -C avx job.sh", Constraints="avx"),
    row(3, SubmitLine="sbatch --exclusive job.sh", AllocCPUS=16, AllocTRES="cpu=16,mem=64G,node=1",
        NodeList="big"),
    row(4, User="bob", Partition="gpu", AllocTRES="cpu=2,mem=1G,node=1,gres/gpu=1",
        ReqTRES="cpu=2,mem=1G,node=1,gres/gpu:a100=1,gres/gpu=1", NodeList="g1",
        SubmitLine="sbatch --partition=gpu --licenses=matlab:1 --dependency=afterok:1 job.sh",
        Submit="2026-03-01T09:00:30", Start="2026-03-01T09:01:00", End="2026-03-01T09:02:00"),
)  # fmt: skip
FILES = {
    "slurm.conf": CONF, "nodes.conf": NODES, "gres.conf": "NodeName=g1 Name=gpu File=/dev/n[0-1]\n",
    "qos.txt": QOS, "assoc.txt": ASSOC, "reservation.txt": RESERVATION, "slurmctld.log": LOG,
    "sacct.txt": "\n".join((HEADER, *ROWS)) + "\n",
}  # fmt: skip


def folder(path, **changed):
    path.mkdir(exist_ok=True)
    for name, text in {**FILES, **{k.replace("_", ".", 1): v for k, v in changed.items()}}.items():
        if text is not None:
            (path / name).write_text(text)
    return path


def site(path, **changed):
    return read_site(folder(path / "site", **changed))


def column(workload, name, table="jobs"):
    return getattr(workload, table)[name].to_pylist()


@pytest.mark.parametrize("text", ["n[1-", "n[a-b]", "n[1-2]]", "n[1-999999]"])
def test_a_wrong_list_of_nodes_is_named(text):
    with pytest.raises(InputError, match="nodes"):
        expand(text)


def test_slurm_conf_has_defaults_includes_continuations_and_any_case(tmp_path):
    conf = read_slurm_conf(folder(tmp_path / "site") / "slurm.conf")
    assert conf.options["clustername"] == "lab"
    assert not conf.unread
    assert not conf.missing
    assert conf.nodes["n2"] == {
        "cpus": "4", "realmemory": "8192", "weight": "1", "feature": "avx",
    }  # fmt: skip
    assert conf.partitions["batch"]["defaulttime"] == "10"
    assert conf.partitions["batch"]["maxtime"] == "1:00:00"
    assert conf.partitions["quick"]["maxtime"] == "5"


def test_gres_conf_counts_files(tmp_path):
    gres = read_records(folder(tmp_path / "site") / "gres.conf")
    assert gres == [{"nodename": "g1", "name": "gpu", "file": "/dev/n[0-1]"}]


def test_files_may_be_compressed(tmp_path):
    plain, path = site(tmp_path), folder(tmp_path / "packed")
    for file in [*path.iterdir()]:
        (path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    packed = read_site(path)
    assert (packed.cluster, packed.policy, packed.notes) == (
        plain.cluster,
        plain.policy,
        plain.notes,
    )


def test_nodes_become_kinds_by_weight(tmp_path):
    assert site(tmp_path).cluster["shape"] == [
        {"class": "n", "count": 2, "cpu": 4, "mem": 8.0, "partitions": ["batch*", "quick"],
         "nodes": "n[1-2]"},
        {"class": "big", "count": 1, "cpu": 16, "mem": 64.0, "weight": 10,
         "partitions": ["batch*"], "nodes": "big"},
        {
            "class": "g", "count": 1, "cpu": 4, "mem": 8.0, "devices": {"gpu": 2},
            "weight": 10, "partitions": ["quick", "gpu"], "nodes": "g1",
        },
    ]  # fmt: skip


def test_partitions_have_rules(tmp_path):
    rules = site(tmp_path).cluster["partitions"]
    assert rules["batch"] == {"tier": 1, "max_time_s": 3600, "default_time_s": 600}
    assert rules["quick"] == {"tier": 3, "max_time_s": 300, "max_nodes": 1, "exclusive": True}


def test_limits_of_qos_and_associations(tmp_path):
    read = site(tmp_path)
    rows = [{k: v for k, v in r.items() if k != "name"} for r in read.cluster["limits"]]
    assert rows == [
        {"of": "license_matlab", "at_most": 4},
        {"of": "cpu", "by": ["user"], "at_most": 8.0, "where": {"qos": "normal"}},
        {"of": "gpu", "by": ["user"], "at_most": 1.0, "where": {"qos": "normal"}},
        {"of": "running_jobs", "by": ["user"], "at_most": 1.0, "where": {"qos": "quick"}},
        {"of": "running_jobs", "by": ["user"], "at_most": 1.0, "where": {"queue": "quick"}},
        {"of": "cpu", "by": [], "at_most": 4.0, "where": {"qos": "quick"}},
        {"of": "cpu", "by": [], "at_most": 4.0, "where": {"queue": "quick"}},
        {"of": "mem", "by": ["account"], "at_most": {"lab": 16.0}},
        {"of": "nodes", "by": ["account"], "at_most": {"lab": 2.0}},
        {"of": "running_jobs", "by": ["user", "account"],
         "at_most": {"ann": {"sub": 3.0}, "bob": {"sub": 1.0}},
         "spares": {"qos": ["quick"], "queue": ["quick"]}},
        {"of": "submitted_jobs", "by": ["user", "account"], "at_most": {"ann": {"sub": 50.0}}},
    ]  # fmt: skip
    assert read.cluster["accounts"] == {"sub": "lab"}


LIMITS = (
    ("normal", "", "cpu=8", "2"),
    ("part", "", "cpu=4", "1"),
    ("over", "OverPartQOS", "cpu=6", "3"),
)
LAB = "Account|User|ParentName|GrpTRES|MaxJobs\nroot||||\nlab||root|cpu=16,mem=8G|\nlab|ann|||2\n"


def test_the_first_of_several_limits_holds_and_all_count(tmp_path):
    """Partition, job (before it with OverPartQOS), associations; what only these limit holds."""
    qos = "Name|Flags|GrpTRES|MaxJobsPU\n" + "".join(f"{'|'.join(row)}\n" for row in LIMITS)
    conf = CONF.replace("QOS=quick", "QOS=part")
    read = site(tmp_path, slurm_conf=conf, qos_txt=qos, assoc_txt=LAB)
    spares = {
        (row["of"], *row.get("where", {"assoc": (row.get("by") or [""])[0]}).items()): row.get(
            "spares"
        )
        for row in read.cluster["limits"]
        if row["of"] in ("cpu", "mem", "running_jobs")
    }
    every = {"qos": ["normal", "part", "over"], "queue": ["quick"]}
    for counted in ("cpu", "running_jobs"):
        assert spares[counted, ("qos", "normal")] == {"queue": ["quick"]}
        assert spares[counted, ("queue", "quick")] == {"qos": ["over"]}
        assert spares[counted, ("qos", "over")] is None
    assert spares["cpu", ("assoc", "account")] == every
    assert spares["mem", ("assoc", "account")] is None
    assert spares["running_jobs", ("assoc", "user")] == every
    assert not [note for note in read.notes if "OverPartQOS" in note or "both hold" in note]


def test_without_enforcement_no_limit_holds(tmp_path):
    conf = CONF.replace("=associations,limits,qos", "=associations")
    read = site(tmp_path, slurm_conf=conf)
    assert [row["of"] for row in read.cluster["limits"]] == ["license_matlab"]
    assert any("AccountingStorageEnforce=associations" in note for note in read.notes)


def test_windows_count_from_the_first_submission(tmp_path):
    cluster = site(tmp_path).cluster
    times = {"from_s": 3600, "until_s": 7200, "announced_s": 1200}
    row = {"name": "mend", "machine": [2, 3], **times, "users": ["root"]}
    assert cluster["reservations"] == [row]
    assert cluster["outages"] == [{"machine": 1, "from_s": 600, "until_s": 2400, "drain": True}]


def test_events_of_nodes_are_outages_and_overlapping_ones_are_joined(tmp_path):
    events = (
        "NodeName|TimeStart|TimeEnd|State\n|2026-03-01T08:00:00|2026-03-01T08:30:00|\n"
        "n2|2026-03-01T09:05:00|2026-03-01T09:20:00|DRAIN\n"
        "big|2026-03-01T08:00:00|2026-03-01T09:20:00|DOWN*\n"
    )
    assert site(tmp_path, events_txt=events).cluster["outages"] == [
        {"machine": 2, "from_s": 0.0, "until_s": 1200},
        {"machine": 1, "from_s": 300, "until_s": 2400, "drain": True},
    ]


def test_the_policy_has_the_options_of_slurm(tmp_path):
    policy = site(tmp_path).policy
    assert policy == {
        "name": "multifactor_slurm", "window_s": 7200, "interval_s": 60, "weight_age": 1000.0,
        "weight_fair_share": 0.0, "weight_job_size": 0.0, "weight_partition": 0.0,
        "weight_qos": 500.0, "max_age_s": 86400, "favor_small": False, "fair_tree": False,
        "qos": {"high": 10}, "shares": {"lab": 30, "sub": 10, "sub/ann": 2},
        "parents": {"sub": "lab"}, "continues": True, "clock_s": 0.0,
    }  # fmt: skip
    policies.build(policy.pop("name"), **policy)


def test_other_schedulers(tmp_path):
    conf = CONF + "SchedulerType=sched/builtin\nPriorityType=priority/basic\n"
    policy = site(tmp_path, slurm_conf=conf).policy
    assert policy == {
        "name": "slurm", "backfill": False, "window_s": 7200, "interval_s": 60, "continues": True,
        "clock_s": 0.0,
    }  # fmt: skip


def test_what_cycles_leave_out(tmp_path):
    parameters = (
        "bf_max_job_user=20,bf_max_job_part=50,bf_max_job_assoc=10,bf_max_job_user_part=5,"
        "bf_max_job_start=7,bf_max_job_array_resv=0,bf_max_time=120,bf_yield_interval=1500000,"
        "bf_yield_sleep=250000,partition_job_depth=30,sched_max_job_start=9,default_queue_depth=40,"
        "sched_min_interval=4500000"
    )
    read = site(tmp_path, slurm_conf=CONF.replace("bf_window=120", parameters))
    own = dict(read.policy)
    built = policies.build(own.pop("name"), **own)
    for name, value in {
        "user_depth": 20, "partition_depth": 50, "association_depth": 10, "user_partition_depth": 5,
        "starts": 7, "array_reserve": 1, "max_s": 120, "yield_s": 1.5, "sleep_s": 0.25,
        "main_partition_depth": 30, "main_starts": 9, "main_depth": 40, "main_delay_s": 5,
    }.items():  # fmt: skip
        assert getattr(built, name) == value, name
    noted = [line for line in read.notes if "SchedulerParameters" in line]
    assert noted == [
        "slurm.conf: SchedulerParameters=bf_min_age_reserve=60: jobs get reservations at once"
    ]


def test_sdiag_tells_how_long_a_plan_takes(tmp_path):
    text = "Main schedule statistics (microseconds):\n\tMean cycle: 70\n\nBackfilling stats\n"
    without = site(tmp_path)
    assert "cycle_s" not in without.policy
    assert any("plans take: 0.01 s" in line for line in without.notes)
    times = "\tLast cycle: 9\n\tMax cycle: 4000000\n\tMean cycle: 2500000\n"
    read = site(tmp_path, sdiag_txt=f"{text}{times}")
    assert (read.policy["cycle_s"], read.policy["longest_cycle_s"]) == (2.5, 4.0)
    idle = site(tmp_path, sdiag_txt=f"{text}\tTotal cycles: 0\n\tLast cycle: 0\n")
    assert "cycle_s" not in idle.policy
    assert any("Total cycles: 0: plans take 0.01 s" in line for line in idle.notes)
    with pytest.raises(InputError, match="Mean cycle: N below Backfilling stats"):
        site(tmp_path, sdiag_txt=text)


def test_preemption_by_qos(tmp_path):
    conf = CONF + "PreemptType=preempt/qos\nPreemptMode=REQUEUE\nAuthInfo=cred_expire=600\n"
    known = site(tmp_path, slurm_conf=conf)
    assert known.policy["requeue_s"] == 601
    assert "requeue_s" not in site(tmp_path, slurm_conf=CONF).policy  # as by default
    assert known.policy["preemption"] == {
        "by": "qos", "levels": {"normal": 0, "high": 1, "quick": 0}, "grace_s": 0.0,
        "when": {"normal": "requeue", "high": "cancel", "quick": "requeue"},
        "victims": "fewest_machines",
    }  # fmt: skip


def test_preemption_by_partition(tmp_path):
    conf = CONF + "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n"
    assert site(tmp_path, slurm_conf=conf).policy["preemption"] == {
        "by": "partition", "levels": {"batch": 1, "quick": 3, "gpu": 1}, "when": "suspend",
        "victims": "fewest_machines",
    }  # fmt: skip


def test_jobs_have_what_they_asked_for(tmp_path):
    w = site(tmp_path).workload
    assert column(w, "partition") == ["batch", "quick|batch", "batch", "gpu"]
    assert column(w, "exclusive") == [False, False, True, False]
    assert column(w, "demand_cpu", "stages") == [2, 2, 4, 2]  # a whole node has 4 at least
    assert column(w, "demand_gpu", "stages") == [0, 0, 0, 1]
    assert column(w, "runs_on", "stages") == ["", "n|g", "", "g"]
    assert column(w, "kind", "job_edges") == ["afterok"]
    assert not [name for name in w.jobs.column_names if "sacct" in name]


@pytest.mark.parametrize(
    ("line", "mem", "classes"),
    [
        ("sbatch --exclusive --mem-per-cpu=3G job.sh", "6G", "big"),  # four CPUs of 8 GiB lack it
        ("sbatch --exclusive --mem-per-cpu=2G job.sh", "4G", ""),
        ("sbatch --exclusive --mem=6G job.sh", "6G", ""),  # of a node
        ("sbatch --exclusive --mem-per-cpu=99G job.sh", "198G", ""),  # no node has it
        ("sbatch --mem-per-cpu=3G job.sh", "6G", ""),
    ],
)
def test_exclusive_jobs_have_memory_for_all_cpus_of_a_node(tmp_path, line, mem, classes):
    rows = (row(1), row(2, SubmitLine=line, ReqTRES=f"cpu=2,mem={mem},node=1", NodeList="big"))
    w = site(tmp_path, sacct_txt="\n".join((HEADER, *rows)) + "\n").workload
    runs_on = column(w, "runs_on", "stages") if "runs_on" in w.stages.column_names else ["", ""]
    assert runs_on == ["", classes]
    # the planner goes by the ends on all nodes, also on those that lack the memory
    plans_on = column(w, "plans_on") if "plans_on" in w.jobs.column_names else ["", ""]
    assert plans_on == ["", "n|big|g" if classes else ""]


def test_licences(tmp_path):
    read = site(tmp_path)
    assert column(read.workload, "license_matlab") == [0, 0, 0, 1]
    row = {"of": "license_matlab", "at_most": 4, "name": "licences of matlab"}
    assert row in read.cluster["limits"]
    limited = "Name|Priority|GrpTRES\nnormal|0|license/matlab=2\n"
    (first, second, *_) = site(tmp_path, qos_txt=limited).cluster["limits"]
    assert (first, second["of"], second["at_most"]) == (row, "license_matlab", 2)
    nobody = site(tmp_path, slurm_conf=CONF.replace("matlab:4", "comsol")).cluster["limits"]
    assert not [row for row in nobody if row["of"].startswith("license_")]


def test_jobs_are_tasks_or_nodes_as_they_asked(tmp_path):
    def job(number, line, nodes, asked_nodes=1, cpus=6):
        tres = {name: f"cpu={cpus},mem=6G,node={n}" for name, n in
                (("AllocTRES", nodes), ("ReqTRES", asked_nodes))}  # fmt: skip
        return row(number, SubmitLine=line, AllocCPUS=cpus, ReqCPUS=cpus, NNodes=nodes, **tres)

    rows = (
        job(1, "sbatch -n 6 job.sh", 2),  # any CPUs
        job(2, "sbatch -n3 -c 2 job.sh", 1),
        job(3, "sbatch job.sh", 2),  # its script asked for tasks
        job(4, "sbatch job.sh", 1),  # its script may ask for a node
        job(5, "sbatch -N 2 -n 6 job.sh", 2, 2),
        job(6, "sbatch -N 1 --ntasks-per-node=6 job.sh", 1),
        job(7, "sbatch -n 6 --mem=6G job.sh", 1),
        job(8, "sbatch -n 6 -c 4 job.sh", 1),  # CPUs that do not divide
    )
    w = site(tmp_path, sacct_txt="\n".join((HEADER, *rows)) + "\n").workload
    assert column(w, "n_tasks", "stages") == [6, 3, 6, 1, 2, 1, 1, 1]
    assert column(w, "demand_cpu", "stages") == [1, 2, 1, 6, 3, 6, 6, 6]
    assert column(w, "demand_mem", "stages") == [1, 2, 1, 6, 3, 6, 6, 6]
    assert column(w, "min_tasks") == [6, 3, 6, 1, 2, 1, 1, 1]
    assert column(w, "n_nodes") == [2, 1, 2, 1, 2, 1, 1, 1]
    assert column(w, "one_per_node") == [False] * 3 + [True] * 5


def test_steps_of_batch_scripts_tell_the_tasks_on_their_node(tmp_path):
    def step(name, cpus, node):
        return row(name, SubmitLine="sbatch", AllocCPUS=cpus, NNodes=1, NodeList=node)

    def job(number, line, **changed):
        changed = {"NodeList": "n[1-2],big", "NNodes": 3, "AllocCPUS": 8, "ReqCPUS": 8} | changed
        amounts = f"cpu={changed['AllocCPUS']},mem=6G,node={changed['NNodes']}"
        return row(number, SubmitLine=line, AllocTRES=amounts, ReqTRES="cpu=8,node=1", **changed)

    again = {"State": "PREEMPTED", "NodeList": "n1,big", "NNodes": 2}
    day = "2026-03-01T09:0"
    later = {"Submit": f"{day}1:30", "Start": f"{day}2:00", "End": f"{day}4:00"}
    rows = (
        job(1, "sbatch -n 8 job.sh"), step("1.batch", 3, "n1"), step("1.extern", 8, "n1"),
        job(2, "sbatch -n 4 -c 2 job.sh"), step("2.batch", 4, "n1"), step("2.0", 2, "n2"),
        job(3, "sbatch -N 3 job.sh", AllocCPUS=6, ReqCPUS=6), step("3.batch", 2, "n1"),
        job(4, "sbatch -n 8 job.sh"), step("9.batch", 2, "n1"),
        job(5, "sbatch -n 8 job.sh", **again), step("5.batch", 1, "n1"),
        job(5, "sbatch -n 8 job.sh", **later), step("5.batch", 2, "n1"),
    )  # fmt: skip
    w = site(tmp_path, sacct_txt="\n".join((HEADER, *rows)) + "\n").workload
    assert column(w, "job_id") == ["1", "2", "3", "4", "5"]
    assert column(w, "node_tasks", "stages") == ["n1=3", "n1=2", "", "", "n1=2"]
    first, second = column(w, "recorded_runs")[4].split(";")
    assert (first.split(" ")[3:], second.split(" ")[3:]) == (
        ["n1,big", "n1=1"],
        ["n[1-2],big", "n1=2"],
    )


def test_notes_name_what_is_not_simulated(tmp_path):
    notes = "\n".join(site(tmp_path).notes)
    for text in (
        "missing: nodes.txt", "missing: events.txt", "SchedulerParameters=bf_min_age_reserve=60",
        "PriorityFlags=MAX_TRES", "NodeName=big TmpDisk=100",
        "QOS high: maxtrespu=billing=5", "sub maxwall=1-00:00:00", "sub/bob Share=parent",
    ):  # fmt: skip
        assert text.lower() in notes.lower(), text
    assert "SlurmdTimeout" not in notes
    assert "bf_continue" not in notes


OPTIONAL = sorted({*site_files.FILES} - {site_files.JOBS})


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", OPTIONAL)
def test_an_empty_optional_file_is_as_good_as_none(tmp_path, name, compressed):
    nodes = {"nodes.txt": NODES.replace("[1-2]", "1")}
    read = []
    for path in (tmp_path / "without", tmp_path / "empty"):
        folder(path, **nodes)
        (path / name).unlink(missing_ok=True)
        read.append(path)
    empty = tmp_path / "empty" / (name + ".gz" * compressed)
    empty.write_bytes(gzip.compress(b"") if compressed else b"")
    without, with_empty = map(read_site, read)
    assert f"missing: {name}" in "\n".join(with_empty.notes)
    assert with_empty.notes == without.notes
    assert with_empty.cluster == without.cluster
    assert with_empty.policy == without.policy
    assert with_empty.workload.jobs.equals(without.workload.jobs)


def test_an_included_file_may_be_empty_and_jobs_may_not(tmp_path):
    empty = folder(tmp_path / "site", **{"nodes.conf": "", "nodes.txt": NODES})
    assert not read_slurm_conf(empty / "slurm.conf").missing
    with pytest.raises(InputError, match=r"sacct\.txt.*empty"):
        site(tmp_path, sacct_txt="")


def test_the_controller_s_view_of_nodes_and_partitions_counts(tmp_path):
    nodes = (
        "NodeName=n1 Arch=x86_64 CPUAlloc=0 CPUEfctv=3 CPUTot=4 AvailableFeatures=avx "
        "Gres=(null) RealMemory=8192 MemSpecLimit=1024 State=IDLE Weight=1 OS=Linux 6.1 #1 SMP\n"
    )
    shown = (
        "PartitionName=quick\n   MaxTime=00:07:00 PriorityTier=9\n   Nodes=n[1-2]\n   State=UP\n"
    )
    read = site(tmp_path, nodes_txt=nodes, partitions_txt=shown)
    first = read.cluster["shape"][0]
    assert (first["count"], first["cpu"], first["mem"]) == (1, 3, 7.0)
    quick = read.cluster["partitions"]["quick"]
    assert (quick["tier"], quick["max_time_s"]) == (9, 420)
    assert "quick" not in read.cluster["shape"][-1]["partitions"]


def test_without_memory_as_a_resource_none_is_demanded(tmp_path):
    read = site(tmp_path, slurm_conf=CONF.replace("CR_Core_Memory", "CR_Core"))
    assert "mem" not in read.cluster["shape"][0]
    assert "demand_mem" not in read.workload.stages.column_names


@pytest.mark.parametrize(
    ("constraint", "features", "is_met"),
    [("a&b", "ab", True), ("a&b", "a", False), ("(a|b)&c", "bc", True), ("[a*2|b*1]", "b", True)],
)
def test_constraints(constraint, features, is_met):
    assert satisfies(constraint, set(features)) is is_met


def test_a_folder_without_nodes_or_jobs_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"neither slurm\.conf nor nodes\.txt"):
        read_site(tmp_path)
    path = folder(tmp_path / "site", sacct_txt=None)
    with pytest.raises(InputError, match=r"no sacct\.txt"):
        sim.read_trace("slurm_site", path)
    assert read_site(path).workload is None


def test_the_site_runs_under_its_own_policy(tmp_path):
    read = site(tmp_path)
    cluster = sim.Cluster.mixed(read.cluster["shape"])
    cluster = cluster.with_partitions(read.cluster["partitions"])
    cluster = cluster.with_limits(read.cluster["limits"], read.cluster["accounts"])
    cluster = cluster.with_reservations(read.cluster["reservations"])
    policy = dict(read.policy)
    run = sim.simulate(read.workload, cluster, policies.build(policy.pop("name"), **policy))
    start_s = run.jobs["start_s"].to_pylist()
    assert run.jobs["outcome"].to_pylist() == ["done"] * 4
    assert max(start_s[:3]) < 300
    assert start_s[3] >= run.jobs["finish_s"][0].as_py()


def test_the_verb_writes_options_and_aliases(tmp_path, capsys):
    path, out, aliases = folder(tmp_path / "site"), tmp_path / "twin", tmp_path / "aliases.json"
    words = ["site", str(path), "--out", str(out), "--pseudonyms", str(aliases)]
    assert main(words) == 0
    assert "4 nodes, 28 CPUs, 2 GPUs" in capsys.readouterr().out
    written = [p for p in out.rglob("*") if p.is_file()]
    assert {p.name for p in written} >= {"site.yaml", "not_understood.txt", "jobs.parquet"}
    texts = [p.read_bytes().replace(b"channel", b"").replace(b"announced", b"") for p in written]
    assert not [text for text in texts if b"ann" in text]
    table = json.loads(aliases.read_text())
    assert table["account"] == {"sub": "account1", "lab": "account2"}
    assert Pseudonyms(aliases).alias("account", "lab") == "account2"
    assert main(["site", str(path), "--out", str(tmp_path), "--pseudonyms", str(aliases)]) == 2


def test_the_cluster_and_the_policy_lie_beside_as_links(tmp_path, capsys, monkeypatch):
    path, out = folder(tmp_path / "site"), tmp_path / "twin"
    assert main(["site", str(path), "--out", str(out)]) == 0
    for group in ("cluster", "policy"):
        link = out / f"{group}.yaml"
        assert link.readlink() == Path(f"{group}/site.yaml")
        assert link.read_text() == (out / group / "site.yaml").read_text()
    assert main(["site", str(path), "--out", str(out), "--name", "lab"]) == 0
    assert (out / "cluster.yaml").readlink() == Path("cluster/lab.yaml")
    assert "left out:" not in capsys.readouterr().out
    (out / "policy.yaml").unlink()
    (out / "policy.yaml").write_text("name: fifo\n")
    assert main(["site", str(path), "--out", str(out)]) == 0
    assert (out / "policy.yaml").read_text() == "name: fifo\n"
    assert "policy.yaml, a link to policy/site.yaml, can't be made" in capsys.readouterr().out

    def refuse(self, target):
        raise OSError("no links here")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert main(["site", str(path), "--out", str(tmp_path / "other")]) == 0
    assert not (tmp_path / "other" / "cluster.yaml").exists()
    assert capsys.readouterr().out.count("can't be made there") == 2


def test_a_reader_tells_the_cluster_of_its_trace(tmp_path):
    path = folder(tmp_path / "site")
    own = cluster_of("slurm_site", path)
    assert own == json.loads(json.dumps(read_site(path).cluster))
    later = cluster_of("slurm_site", path, begin_s=600.0)
    assert later["outages"][0]["until_s"] == own["outages"][0]["until_s"] - 600.0
    assert later["reservations"][0]["until_s"] == own["reservations"][0]["until_s"] - 600.0
    (path / "slurm.conf").write_text(CONF.replace("matlab:4", "matlab:5"))
    assert cluster_of("slurm_site", path)["limits"][0]["at_most"] == 5
    assert cluster_of("sacct", path / "sacct.txt") is None
    (warning,) = sim.read_trace("slurm_site", path).meta["report"]["warnings"][-1:]
    assert "policy=multifactor_slurm with options of its own" in warning


def test_accounts_that_a_partition_allows_have_aliases_too(tmp_path):
    conf = CONF + "PartitionName=own Nodes=big AllowAccounts=lab,sub DenyGroups=staff\n"
    path = folder(tmp_path / "site", slurm_conf=conf)
    read = read_site(path, pseudonyms=Pseudonyms(tmp_path / "names.json"))
    notes = "\n".join(map(str, read.notes))
    assert "allowaccounts=account" in notes.lower()
    assert "lab,sub" not in notes
    assert "staff" not in notes


def test_accounts_that_are_each_others_parent_do_not_hang(tmp_path):
    circle = ASSOC + "x||y|1||||\ny||x|1||||\nx|eve||1||||\n"
    assert site(tmp_path, assoc_txt=circle).workload.n_jobs == len(ROWS)
