"""Outages, drains and reservations that are known beforehand, computed by hand."""

import math

import pytest

import policies
import sim
from sim.cluster.faults import Outages
from tests.examples import COMPILED_WIDE

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

NEVER = math.inf


def job(job_id, run_s, limit_s, submit_s=0.0, n=1, **more):
    """Return a rigid job of n tasks of one CPU, which run as long, and its limit."""
    stages = [{"durations_s": [run_s] * n, "demand": {"cpu": 1}}]
    job = {"job_id": job_id, "submit_s": submit_s, "stages": stages, "min_tasks": n}
    return job | {"requested_s": limit_s} | more


def starts(jobs, cluster, policy, outages, **options):
    """Return when each job starts; rows of outages are (machine, from, until, known, drain)."""
    cluster = cluster.with_outages(Outages.from_columns(*zip(*outages, strict=True)))
    plan = policies.build(policy, **options)
    return sim.simulate(sim.Workload.from_jobs(jobs), cluster, plan).job_start.tolist()


ONE = [job("long", 5.0, 20.0), job("short", 5.0, 8.0), job("later", 2.0, 6.0, submit_s=1.0)]
"""Only the last two are expected to end before 10 s; all do."""


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (False, [0.0, 0.0, 5.0]),  # nobody knows
        (True, [15.0, 0.0, 1.0]),  # until 20 s, 8 s and 7 s
    ],
)
@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_job_that_would_run_into_maintenance_waits_until_it_is_over(policy, known, expected):
    cluster = sim.Cluster.machines(1, cpu=2)
    assert starts(ONE, cluster, policy, [(0, 10.0, 15.0, known, False)]) == expected


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_pool_of_slots_is_one_machine(policy):
    outages = [(0, 10.0, 15.0, True, False)]
    assert starts(ONE, sim.Cluster.slots(2), policy, outages) == [15.0, 0.0, 1.0]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_job_may_end_as_maintenance_begins(policy):
    """A limit of 10 s at 0 s is in time; one of 10 s at 1 s is not."""
    jobs = [job("a", 1.0, 10.0), job("b", 1.0, 10.0, submit_s=1.0)]
    outages = [(0, 10.0, 12.0, True, False)]
    assert starts(jobs, sim.Cluster.machines(1, cpu=1), policy, outages) == [0.0, 12.0]


def test_other_machines_are_used_meanwhile():
    """Machine 0 is in maintenance from 4 to 30 s: the wide job waits for it, the others do not.

    The last would end at 26 s on machine 1, where the wide one begins at 30 s.
    """
    jobs = [
        job("first", 6.0, 6.0),
        job("wide", 1.0, 10.0, n=2),
        job("second", 3.0, 9.0),
        job("third", 3.0, 15.0, submit_s=11.0),
    ]
    cluster, outages = sim.Cluster.machines(2, cpu=1), [(0, 4.0, 30.0, True, False)]
    assert starts(jobs, cluster, "easy", outages) == [0.0, 30.0, 6.0, 11.0]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_nothing_is_planned_on_a_machine_that_is_gone_for_good(policy):
    jobs = [job("a", 4.0, 20.0), job("b", 4.0, 20.0)]
    cluster, outages = sim.Cluster.machines(2, cpu=1), [(1, 10.0, NEVER, True, False)]
    assert starts(jobs, cluster, policy, outages) == [0.0, 4.0]


def test_a_reservation_made_before_stays_where_the_machine_is_back():
    """Machine 1 is in maintenance from 2 to 6 s; b needs both, and has them reserved from 6 s on.

    c, which would end at 9 s, does not pass it: EASY without the window would start it at 3 s.
    """
    jobs = [
        job("a", 3.0, 5.0),
        job("b", 1.0, 2.0, submit_s=1.0, n=2),
        job("c", 1.0, 6.0, submit_s=3.0),
    ]
    cluster, outages = sim.Cluster.machines(2, cpu=1), [(1, 2.0, 6.0, True, False)]
    assert starts(jobs, cluster, "easy", outages) == [0.0, 6.0, 7.0]
    assert starts(jobs, cluster, "conservative", outages) == [0.0, 6.0, 7.0]


def test_what_outlives_its_expected_end_stops_as_maintenance_begins():
    """a asks for 5 s and runs for 20: maintenance from 8 to 9 s stops it."""
    cluster, outages = sim.Cluster.machines(1, cpu=1), [(0, 8.0, 9.0, True, False)]
    cluster = cluster.with_outages(Outages.from_columns(*zip(*outages, strict=True)))
    workload = sim.Workload.from_jobs([job("a", 20.0, 5.0)])
    result = sim.simulate(workload, cluster, policies.build("easy"))
    assert result.job_finish.tolist() == [29.0]
    assert result.stops["reason"].to_pylist() == ["machine lost"]


def test_slurm_starts_nothing_that_would_run_into_maintenance():
    """At 0 s b, of 8 s, is in time for 10 s; a, of 20 s, waits; both are tried each second.

    The main loop bars the node for b behind a; a plan at 1 s starts b. a starts after 15 s.
    """
    options = {"interval_s": 1, "main_interval_s": 1}
    cluster, outages = sim.Cluster.machines(1, cpu=2), [(0, 10.0, 15.0, True, False)]
    a, b, c = starts(ONE, cluster, "slurm", outages, **options)
    assert 15.0 <= a < 18.0
    assert b <= 2.0
    assert c <= 4.0


def test_without_expected_ends_nothing_is_known():
    jobs = [job("a", 5.0, 20.0), job("b", 5.0, 8.0)]
    cluster, outages = sim.Cluster.machines(1, cpu=1), [(0, 8.0, 9.0, True, False)]
    assert starts(jobs, cluster, "fifo", outages) == [0.0, 5.0]


@pytest.mark.parametrize(
    ("fit", "expected"),
    [
        ("strict", [9.0, 9.0]),  # b waits behind a
        ("skip", [9.0, 0.0]),
        ("pack", [9.0, 0.0]),
    ],
)
@pytest.mark.parametrize("pool", [True, False])
def test_limits_that_are_enforced_say_when_jobs_end(fit, expected, pool):
    """a, of at most 20 s, would be stopped at 8 s; b, of at most 8 s, is done by then."""
    jobs = [job("a", 5.0, 20.0, min_tasks=0), job("b", 5.0, 8.0, min_tasks=0)]
    cluster = sim.Cluster.slots(2) if pool else sim.Cluster.machines(1, cpu=2)
    cluster, outages = cluster.with_enforced_limits(), [(0, 8.0, 9.0, True, False)]
    assert starts(jobs, cluster, "fifo", outages, fit=fit) == expected


def test_a_limit_counts_from_the_first_room_of_a_job():
    """Two tasks on one machine of one CPU, of at most 7 s together: the second is done by 8 s.

    A job of the same limit that comes at 2 s would not be.
    """
    jobs = [job("a", 2.0, 7.0, min_tasks=0), job("b", 1.0, 7.0, submit_s=2.0, min_tasks=0)]
    jobs[0]["stages"][0]["durations_s"] = [2.0, 2.0]
    cluster, outages = sim.Cluster.machines(1, cpu=1), [(0, 8.0, 9.0, True, False)]
    limited = cluster.with_enforced_limits()
    assert starts(jobs, limited, "fifo", outages, fit="skip") == [0.0, 9.0]


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative"])
@pytest.mark.parametrize("known", [True, False])
def test_a_drained_machine_takes_nothing_new_and_what_runs_there_ends(policy, known):
    """Machine 0 is drained from 2 to 9 s: a runs there to 5 s, b waits for machine 1 until 4 s."""
    jobs = [
        job("a", 5.0, 5.0),
        job("other", 4.0, 4.0),
        job("b", 3.0, 3.0, submit_s=1.0),
        job("c", 3.0, 3.0, submit_s=1.0),
        job("d", 3.0, 3.0, submit_s=1.0),
    ]
    cluster, outages = sim.Cluster.machines(2, cpu=1), [(0, 2.0, 9.0, known, True)]
    assert starts(jobs, cluster, policy, outages) == [0.0, 0.0, 4.0, 7.0, 9.0]


def test_a_drain_and_an_outage_may_overlap():
    """Drained from 1 to 8 s, lost from 2 to 4 s: a is stopped at 2 s and starts anew at 8 s."""
    outages = [(0, 1.0, 8.0, False, True), (0, 2.0, 4.0, False, False)]
    cluster = sim.Cluster.machines(1, cpu=1)
    cluster = cluster.with_outages(Outages.from_columns(*zip(*outages, strict=True)))
    workload = sim.Workload.from_jobs([job("a", 3.0, 3.0)])
    assert sim.simulate(workload, cluster, policies.build("fifo")).job_finish.tolist() == [11.0]


def reserved(jobs, cluster, policy, *rows, **options):
    """Run with reservations of (name, machine, from, until) or of more keys; return the result."""
    keys = ("name", "machine", "from_s", "until_s")
    rows = [row if isinstance(row, dict) else dict(zip(keys, row, strict=True)) for row in rows]
    workload = sim.Workload.from_jobs(jobs)
    return sim.simulate(
        workload, cluster.with_reservations(rows), policies.build(policy, **options)
    )


COURSE = [
    job("other", 3.0, 8.0),
    job("course", 2.0, 2.0, reservation="course"),
    job("course, too", 2.0, 2.0, submit_s=1.0, reservation="course"),
    job("early", 2.0, 4.0, submit_s=1.0),
]
"""Machine 0 is reserved from 4 to 9 s, for jobs of at most 5 s there."""


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("easy", [0.0, 4.0, 6.0, 3.0]),  # on 1; then on 0; on 1, as 1 + 4 s is not in time
        ("conservative", [0.0, 4.0, 6.0, 3.0]),
        ("fifo", [0.0, 4.0, 6.0, 1.0]),  # nothing is known of ends: both on 0, and on 1
    ],
)
def test_reserved_machines_are_for_jobs_of_the_reservation(policy, expected):
    cluster = sim.Cluster.machines(2, cpu=1)
    result = reserved(COURSE, cluster, policy, ("course", 0, 4.0, 9.0))
    assert result.job_start.tolist() == expected
    assert result.task_machine[1:3].tolist() == [0, 0]


def test_slurm_keeps_reserved_nodes_for_their_jobs():
    cluster = sim.Cluster.machines(2, cpu=1)
    result = reserved(COURSE, cluster, "slurm", ("course", 0, 4.0, 30.0), interval_s=1)
    other, first, second, early = result.job_start.tolist()
    assert other < 2.0
    assert 4.0 <= first < 6.0
    assert first + 2.0 <= second < 12.0
    assert result.task_machine[1:3].tolist() == [0, 0]
    assert early < 2.0 or result.task_machine[3] == 1


def test_a_job_ends_within_its_reservation_or_does_not_start():
    """From 2 to 6 s: one of 5 s never fits, and is over with the reservation; one of 4 s does."""
    jobs = [job("long", 1.0, 5.0, reservation="r"), job("short", 1.0, 4.0, reservation="r")]
    result = reserved(jobs, sim.Cluster.machines(1, cpu=1), "easy", ("r", 0, 2.0, 6.0))
    assert result.jobs["outcome"].to_pylist() == ["timeout", "done"]
    assert result.job_finish.tolist() == [6.0, 3.0]
    assert math.isnan(result.job_start[0])
    assert result.metrics["jobs_failed"] == 0.5


def test_what_runs_at_the_end_of_its_reservation_stops():
    """Asked for 3 s, and runs for 9: stopped at 6 s. One that comes at 7 s is rejected."""
    jobs = [
        job("a", 9.0, 3.0, reservation="r"),
        job("b", 1.0, 1.0, submit_s=3.0),
        job("c", 1.0, 1.0, submit_s=7.0, reservation="r"),
    ]
    result = reserved(jobs, sim.Cluster.machines(1, cpu=1), "easy", ("r", 0, 2.0, 6.0))
    assert result.jobs["outcome"].to_pylist() == ["timeout", "done", "rejected"]
    assert result.job_start.tolist()[:2] == [2.0, 6.0]
    assert result.stops["stop_s"].to_pylist() == [6.0]


@pytest.mark.parametrize("fit", ["strict", "skip", "pack"])
def test_who_waits_for_a_reservation_blocks_nobody(fit):
    """One queue: the first waits until 5 s for machine 0, and the others run meanwhile."""
    jobs = [
        job("a", 1.0, 1.0, reservation="r", min_tasks=0),
        job("b", 3.0, 3.0, min_tasks=0),
        job("c", 3.0, 3.0, min_tasks=0),
        job("d", 2.0, 2.0, submit_s=1.0, min_tasks=0),
    ]
    result = reserved(jobs, sim.Cluster.machines(2, cpu=1), "fifo", ("r", 0, 5.0, 9.0), fit=fit)
    assert result.job_start.tolist() == [5.0, 0.0, 0.0, 3.0]


def test_in_strict_order_a_job_blocks_no_machine_that_is_reserved():
    """Machine 0 is reserved from 0 s on; b waits for 1, and c, behind it, has machine 0."""
    jobs = [
        job("a", 5.0, 5.0),
        job("b", 5.0, 5.0),
        job("c", 2.0, 2.0, reservation="r"),
        job("d", 2.0, 2.0, reservation="r"),
        job("e", 1.0, 1.0),
    ]
    result = reserved(jobs, sim.Cluster.machines(2, cpu=1), "fifo", ("r", 0, 0.0, 9.0))
    assert result.job_start.tolist() == [0.0, 5.0, 0.0, 2.0, 9.0]


def test_users_and_accounts_may_use_a_reservation_beside_the_rest():
    """Machine 0 is reserved for ann, and for the account lab; others wait for machine 1."""
    row = {"name": "r", "machine": 0, "from_s": 0, "until_s": 9, "users": ["ann"]}
    jobs = [
        job("a", 2.0, 2.0, user="bob"),
        job("b", 2.0, 2.0, user="bob"),
        job("c", 2.0, 2.0, user="ann"),
        job("d", 2.0, 2.0, user="bob", account="lab"),
    ]
    cluster = sim.Cluster.machines(2, cpu=1)
    result = reserved(jobs, cluster, "easy", row | {"accounts": ["lab"]})
    assert result.job_start.tolist() == [0.0, 2.0, 0.0, 2.0]
    assert result.task_machine.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_nobody_knows_of_a_reservation_before_it_is_announced(policy):
    """a and b would run into the window from 10 s on; it is announced at 2 s: only b waits."""
    jobs = [job("a", 11.0, 20.0), job("b", 1.0, 20.0, submit_s=2.0)]
    row = {"name": "r", "machine": 0, "from_s": 10.0, "until_s": 15.0, "users": ["root"]}
    cluster = sim.Cluster.machines(1, cpu=2)
    assert reserved(jobs, cluster, policy, row).job_start.tolist() == [15.0, 15.0]
    known = reserved(jobs, cluster, policy, row | {"announced_s": 2.0})
    assert known.job_start.tolist() == [0.0, 15.0]


def test_a_reservation_may_have_several_windows():
    """From 1 to 3 s and from 6 to 8 s: the third job of 1.5 s waits for the second window."""
    jobs = [job(name, 1.0, 1.5, reservation="r") for name in "ab"]
    rows = [("r", 0, 1.0, 3.0), ("r", 0, 6.0, 8.0)]
    result = reserved(jobs, sim.Cluster.machines(1, cpu=1), "conservative", *rows)
    assert result.job_start.tolist() == [1.0, 6.0]


def test_a_job_with_a_reservation_takes_none_of_the_first_in_order():
    """EASY reserves for one: a waits for its own machine, so that b, of two machines, is the one.

    b has them from 4 s on, or, where r ends at 3 s and a waits for its next window, from 3 s on. c,
    which would end at 7 s, does not pass it.
    """
    jobs = [
        job("first", 4.0, 4.0),
        job("a", 1.0, 1.0, submit_s=1.0, reservation="r"),
        job("b", 1.0, 1.0, submit_s=1.0, n=2),
        job("c", 1.0, 6.0, submit_s=1.0),
    ]
    result = reserved(jobs, sim.Cluster.machines(3, cpu=1), "easy", ("r", 2, 0.5, 99.0))
    a, b = ("r", 2, 0.5, 3.0), ("r", 2, 50.0, 99.0)
    assert result.job_start.tolist() == [0.0, 1.0, 4.0, 5.0]
    jobs[1]["requested_s"] = 10.0
    result = reserved(jobs, sim.Cluster.machines(3, cpu=1), "easy", a, b)
    assert result.job_start.tolist() == [0.0, 50.0, 3.0, 4.0]


def test_a_job_fits_a_machine_of_its_reservation():
    kinds = [{"class": "small", "cpu": 1}, {"class": "large", "cpu": 4}]
    large = job("a", 1.0, 1.0, reservation="r")
    large["stages"][0]["demand"] = {"cpu": 2}
    cluster = sim.Cluster.mixed(kinds)
    assert reserved([large], cluster, "fifo", ("r", 1, 2.0, 9.0)).job_start.tolist() == [2.0]
    with pytest.raises(sim.InputError, match="to run in reservation 'r', none of whose machines"):
        reserved([large], cluster, "fifo", ("r", 0, 2.0, 9.0))
    large["stages"][0]["runs_on"] = "small"
    large["stages"][0]["demand"] = {"cpu": 1}
    with pytest.raises(sim.InputError, match="to run in reservation 'r', none of whose machines"):
        reserved([large], cluster, "fifo", ("r", 1, 2.0, 9.0))


def test_a_reservation_without_an_end_that_is_too_small_is_named():
    jobs = [job("a", 1.0, 1.0, n=2, reservation="r")]
    with pytest.raises(sim.base.errors.DeadlockError, match="a reservation has no end"):
        reserved(
            jobs, sim.Cluster.machines(2, cpu=1), "easy", {"name": "r", "machine": 1, "from_s": 0}
        )


def test_times_of_reservations_count_from_the_first_submission():
    """Jobs on epoch seconds: machine 0 is reserved from 4 s after the first on."""
    zero_s = 1_700_000_000.0
    jobs = [job("a", 2.0, 2.0, zero_s), job("b", 2.0, 2.0, zero_s + 3.0)]
    cluster = sim.Cluster.machines(1, cpu=1)
    result = reserved(jobs, cluster, "easy", ("r", 0, 4.0, 9.0))
    assert (result.job_start - zero_s).tolist() == [0.0, 9.0]
    assert result.metrics["reservations_met"] == 1.0
    assert result.notes == ()
    late = reserved(jobs, cluster, "easy", ("r", 0, 99.0, 100.0))
    assert late.metrics["reservations_met"] == 0.0
    assert "None of the cluster's 1 reservations of machines is in the run" in late.notes[0]


def test_a_job_asks_for_a_reservation_that_exists():
    jobs, cluster = [job("a", 1.0, 1.0, reservation="cours")], sim.Cluster.machines(1, cpu=1)
    with pytest.raises(sim.InputError, match=r"'cours'.*did you mean 'course'"):
        reserved(jobs, cluster, "fifo", ("course", 0, 0.0, 9.0))


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"name": "r", "machine": 3, "from_s": 0}, "machine 3, of 2: valid: 0 to 1"),
        ({"name": "r", "machine": -1, "from_s": 0}, "must be 0 or more"),
        ({"name": "", "machine": 0, "from_s": 0}, "name is empty"),
        ({"machine": 0, "from_s": 0}, r"reservations\[0\].name must be"),
        ({"name": "r", "machine": 0, "from_s": 4, "until_s": 4}, "4 to 4 s is no time"),
        ({"name": "r", "machine": 0, "from_s": 0, "users": "ann"}, "users must be"),
        ({"name": "r", "machine": 0, "from_s": 4, "announced_s": 5}, "announce it by then"),
        ({"name": "r", "machine": 0, "from_s": 0, "who": 1}, "unknown key 'who'"),
    ],
)
def test_reservations_that_can_not_be_are_named(row, text):
    with pytest.raises(sim.InputError, match=text):
        sim.Cluster.machines(2, cpu=1).with_reservations([row])


def test_outages_as_rows():
    rows = [
        {"machine": [0, 2], "from_s": 1, "until_s": 2.5, "known": True},
        {"machine": 1, "from_s": 3, "drain": True},
    ]
    outages = Outages.parse(rows)
    assert outages.machine.tolist() == [0, 2, 1]
    assert outages.up_s.tolist() == [2.5, 2.5, NEVER]
    assert outages.is_known.tolist() == [True, True, False]
    assert outages.is_drain.tolist() == [False, False, True]
    assert len(Outages.parse([])) == 0


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"machine": 0, "from_s": 1, "until": 2}, r"outages\[0\]: unknown key 'until'"),
        ({"machine": 0}, r"outages\[0\] names no from_s"),
        ({"machine": "a", "from_s": 1}, "machine must be a whole number"),
        ({"machine": 0, "from_s": 1, "known": "yes"}, "known must be true or false"),
        ({"machine": 0, "from_s": 3, "until_s": 2}, "must end after it begins"),
        (3, "has the keys machine, from_s, until_s, known, drain"),
    ],
)
def test_rows_that_can_not_be_are_named(row, text):
    with pytest.raises(sim.InputError, match=text):
        Outages.parse([row])


def test_columns_have_one_length():
    with pytest.raises(sim.InputError, match="2 machines and 3 of known"):
        Outages.from_columns([0, 1], [0.0, 0.0], [1.0, 1.0], known=[True, False, True])
