"""The fields of the kernel's state: the one table of all arrays.

FIELDS has name, dtype, shape and initial value. Prefixes tell the writer: ``w_`` the workload and
``c_`` the cluster (read-only), ``p_`` the policy, ``state_`` and ``out_`` the kernel. A shape is
given by the counts of its axes: J jobs, G stages, T tasks, E edges, R resources, M machines, F of
the resources that decide what fits, Q kernel queues (organisations × the queues of the policy), O
organisations, L the queues of the policy, S slots for running tasks, N entries of the heap of their
ends, H held slots of gangs, B candidates of a bundle, V events between two callbacks, K types of
tasks in a mix, Y kinds of stages, Z buckets of them, P steps of an availability profile, X runs of
like tasks (tasks of a stage in a row, of equal duration), C records of batches, I of stopped
attempts, BLOCK; * is any number.
``J+1`` is one more, ``S+J`` their sum, and ``J:GANGS`` is J where there are GANGS, else 1: a
feature, or a condition that `sim.engine.layout` knows.

The *turn* of a task is its position in the start order of its stage; the turn of a job is its
position in the order of submission.
"""

from __future__ import annotations

from math import inf, nan

INPUT = None
"""Initial value of a field that `sim.engine.layout` fills, or that exists before."""

FIELDS: tuple[tuple[str, str, str, float | None], ...] = (
    # the workload, read-only
    ("w_job_submit", "f8", "J", INPUT),  # s
    ("w_job_stage0", "i8", "J+1", INPUT),  # first stage of each job
    ("w_job_min_tasks", "i4", "J", INPUT),  # gang size, 0 for none
    ("w_job_org", "i4", "J", INPUT),  # organisation
    ("w_job_tier", "i4", "J:TIERS", INPUT),  # of its partitions; the least goes first
    ("w_job_work", "f8", "J", INPUT),  # task seconds
    ("w_job_limit", "f8", "J:ENFORCES", INPUT),  # of its run time, s
    ("w_job_slot", "i8", "J:GANGS, R", INPUT),  # room of a held gang slot, quanta
    ("w_job_one_per_node", "i1", "J", INPUT),  # no two of its slots share a machine
    # level of domains that a gang requires, and the narrowest it asks for; -1 for none
    ("w_job_required", "i4", "J:TOPOLOGY", INPUT),
    ("w_job_narrowest", "i4", "J:TOPOLOGY", INPUT),
    ("c_domain", "i4", "*, *", INPUT),  # of each level, the widest first, of each machine
    ("c_crossing", "f8", "*", INPUT),  # factor of a gang that crosses the domains of a level
    ("state_job_crossing", "f8", "J:TOPOLOGY", 1.0),  # its factor, by its slots
    ("state_mach_within", "i1", "M:TOPOLOGY", 1),  # where a search looks
    ("state_domain_slots", "i8", "M:TOPOLOGY", 0),  # of a gang, in each domain; -1: looked at
    ("w_job_shape", "i4", "J:GANGS", INPUT),  # of its slots (`sim.engine.kernels.slot_counts`)
    ("w_shape_slot", "i8", "*, F", INPUT),  # quanta
    ("w_shape_allowed", "i8", "*", INPUT),  # classes, as bits
    ("w_job_allowed", "i8", "J:CHOOSES", INPUT),  # classes that a held slot may be on, as bits
    ("w_job_planned_on", "i8", "J:CHOOSES", INPUT),  # and that count where its start is planned
    ("w_job_pools", "i8", "J:CLASSES", INPUT),  # pools in which it may be, as bits
    # elastic jobs: least width, 0 for others; time that a change takes, s; pace at each width
    ("w_job_width_min", "i4", "J:ELASTIC", INPUT),
    ("w_job_reconfigure", "f8", "J:ELASTIC", INPUT),
    ("w_job_pace0", "i8", "J:ELASTIC", INPUT),
    ("w_pace", "f8", "*", INPUT),
    ("w_job_total", "i8", "J:GANGS, R", INPUT),  # room of all of its slots
    # components of gangs (`sim.engine.kernels.components`): first one of each job, that of a stage;
    # room of a slot, slots, classes, first entry of state_held_machine, a stage that fills slots
    ("w_job_component0", "i8", "J+1:COMPONENTS", INPUT),
    ("w_stage_component", "i8", "G:COMPONENTS", INPUT),
    ("w_slot", "i8", "*, R", INPUT),
    ("w_slot_size", "i8", "*", INPUT),
    ("w_slot_allowed", "i8", "*", INPUT),
    ("w_slot0", "i8", "*", INPUT),
    ("w_slot_stage", "i8", "*", INPUT),
    # caps: the groups of each job, and its limit, if its minutes are counted: s, and whole ones
    ("w_job_group0", "i8", "J+1:CAPS", INPUT),
    ("w_job_group", "i4", "*", INPUT),
    ("w_job_group_spared", "i1", "*", INPUT),  # it counts, and may exceed the cap
    ("w_job_group_amount", "i8", "*", INPUT),  # of the job while it counts: jobs, nodes, licences
    ("w_job_cap_limit_s", "f8", "J:CAPS", INPUT),
    ("w_job_cap_limit", "i8", "J:CAPS", INPUT),
    ("w_job_preempts", "i1", "J:PREEMPTS", INPUT),  # it may preempt others
    ("w_job_checkpoint", "f8", "J:CHECKPOINTS", INPUT),  # interval, s; inf: saves nothing
    ("w_job_restart", "f8", "J:CHECKPOINTS", INPUT),  # time to restart, s
    ("w_job_input_mode", "i1", "J:INPUTS", INPUT),  # 0 ignores inputs, 1 blind, 2 polls
    ("w_job_poll_lag", "f8", "J:INPUTS", INPUT),  # s
    ("w_input0", "i8", "J+1:INPUTS", INPUT),  # first job that waits for a job, or reads its output
    ("w_input_reader", "i4", "*", INPUT),
    ("w_input_kind", "i1", "*", INPUT),  # `sim.engine.kernels.release`
    ("w_input_delay", "f8", "*", INPUT),  # s
    ("w_job_begin", "f8", "J:RELEASES", INPUT),  # not eligible before, s
    ("w_job_needs_any", "i1", "J:RELEASES", INPUT),  # any of its dependencies, not all
    ("w_job_singleton", "i1", "J:RELEASES", INPUT),
    ("w_job_name", "i4", "J:RELEASES", INPUT),  # jobs of its user and name; -1: none matter
    ("w_name_job0", "i8", "*", INPUT),  # first job of each group
    ("w_name_job", "i4", "*", INPUT),  # ascending in each
    ("w_stage_job", "i4", "G", INPUT),
    ("w_stage_task0", "i8", "G+1", INPUT),
    ("w_stage_demand", "i8", "G:DEMANDS, R", INPUT),  # quanta; one row for a pool of slots
    ("w_least_demand", "i8", "R", INPUT),  # of any task
    # w_stage_demand, but below any room for resources that do not decide what fits
    ("w_stage_fit", "i8", "G:DEMANDS, R", INPUT),
    ("w_stage_allowed", "i8", "G:CHOOSES", INPUT),  # classes of machines it may run on, as bits
    ("w_stage_speed", "f8", "G:CLASS_SPEEDS, *", INPUT),  # on each class of machines
    ("w_stage_pools", "i8", "G:CLASSES", INPUT),  # pools of machines it can run in, as bits
    # stages of a kind have the same demand and may run on the same machines
    ("w_stage_kind", "i4", "G:KINDS", INPUT),
    ("w_stage_running_kind", "i4", "G:CAPS", INPUT),  # while caps count its job as running
    # bit 0: its ready tasks are a heap, bit 1: has one-to-one children
    ("w_stage_o2o", "i1", "G", INPUT),
    ("w_stage_uniform", "i1", "*", INPUT),  # its tasks run in the order of rows in any case
    ("w_stage_home", "i4", "G", INPUT),  # machine of its first task's input, -1 for none
    ("w_stage_remote_factor", "f8", "G", INPUT),
    ("w_task_duration", "f8", "T:SINGLES", INPUT),  # s
    ("w_stage_run0", "i8", "G+1:BATCHES", INPUT),  # first run of each stage
    ("w_run_task0", "i8", "X+1:BATCHES", INPUT),  # first task of each run
    ("w_run_duration", "f8", "X:BATCHES", INPUT),  # s, of each of its tasks
    # attempts that fail before the task succeeds
    ("w_attempt0", "i8", "T+1:FAILS", INPUT),
    ("w_attempt_s", "f8", "*", INPUT),  # s until the attempt fails
    ("w_attempt_lost", "i4", "*", INPUT),  # the task whose output it finds lost, -1 for none
    ("w_edge0", "i8", "G+1", INPUT),
    ("w_edge_child", "i4", "E", INPUT),
    ("w_edge_kind", "i1", "E", INPUT),  # 0 barrier, 1 one-to-one
    # machines lost and back, by time
    ("w_outage_time", "f8", "*", INPUT),
    ("w_outage_machine", "i4", "*", INPUT),
    ("w_outage_back", "i1", "*", INPUT),
    ("w_outage_kind", "i1", "*", INPUT),  # `sim.cluster.faults`
    # windows of each machine that are known beforehand, by begin: [from, until) s
    ("c_window0", "i8", "M+1:WINDOWS", INPUT),
    ("c_window_from", "f8", "*", INPUT),
    ("c_window_until", "f8", "*", INPUT),
    ("c_window_ahead", "i1", "*", INPUT),  # nothing runs into it
    ("c_window_known", "f8", "*", INPUT),  # when it is announced
    ("c_window_owner", "i4", "*", INPUT),  # its reservation, -1 for none
    ("c_over_s", "f8", "*", INPUT),  # last ends of reservations
    ("c_pool_machine", "i8", "*", INPUT),  # a machine of each pool, if not all are open
    ("w_job_reservation", "i4", "J:WINDOWS", INPUT),  # in which alone it runs, -1 for none
    ("w_job_may_use", "i8", "J:WINDOWS", INPUT),  # reservations, as bits
    ("w_job_over_s", "f8", "J:WINDOWS", INPUT),  # last end of its reservation, inf for none
    ("state_next_over", "i8", "*", INPUT),  # position in c_over_s
    # pinned jobs by the time at which they are placed, s; the machines of each job's tasks,
    # ascending, then -1 for any of these; times at which placements are tried, s
    ("w_pin_s", "f8", "*", INPUT),
    ("w_pin_job", "i4", "*", INPUT),
    ("w_pin_machine", "i4", "T:PINS", INPUT),
    ("w_moment_s", "f8", "*", INPUT),
    ("state_mach_given", "i1", "M:GANGS", 0),  # it has a slot of the gang that is to have one each
    ("state_mach_limit", "i4", "M:PINS", 0),  # slots of a pinned gang that a machine may hold
    ("state_pin_due", "i4", "J:PINS", 0),  # those that are due and wait
    ("state_pin_machine", "i4", "T:PINS", 0),  # of each slot of a job that is placed
    # the cluster, read-only
    # resources in order: rigid ones, which can't be overbooked; fungible ones that decide what
    # fits (F with the rigid ones); the other fungible ones
    ("c_total", "i8", "R", INPUT),  # quanta
    ("c_scale", "f8", "R", INPUT),  # 1 / total
    ("c_alignment_scale", "f8", "M, F", INPUT),  # 1 / capacity², of each machine
    ("c_capacity", "i8", "M:CAPACITIES, R", INPUT),  # quanta
    ("c_mach_scale", "f8", "R", INPUT),  # 1 / the largest amount on a machine
    ("c_mach_class", "i8", "M:CHOOSES", INPUT),  # the bit of its class
    ("c_mach_level", "i4", "M:CHOOSES", INPUT),  # the rank of its weight
    ("c_mach_kind", "i4", "M:CODES", INPUT),  # its class, a column of w_stage_speed
    ("c_mach_pool", "i8", "M:CLASSES", INPUT),  # the bit of its pool
    ("c_mach_device0", "i8", "M+1:CHOOSES", INPUT),  # its first device
    ("c_speed_time", "f8", "*", INPUT),  # start of each speed, s
    ("c_speed", "f8", "*", INPUT),
    ("c_launch_s", "f8", "*", INPUT),  # lags to draw from, or the two between which they are
    ("w_stage_lag", "f8", "*", INPUT),  # s, of each stage; none for no lag
    ("c_launch_key", "i8", "*", INPUT),  # two words of 32 bits
    ("c_org_cap", "i8", "O, R", INPUT),  # hard caps
    ("c_org_weight", "f8", "O", INPUT),
    # the tree of quotas, by node: organisations first (`sim.engine.kernels.quotas`)
    ("c_org_path", "i4", "*, *", INPUT),  # nodes from the root to each organisation, then -1
    ("c_node_parent", "i4", "*", INPUT),  # -1 for a root
    ("c_node_weight", "f8", "*", INPUT),
    ("c_node_limit", "i8", "*, *", INPUT),  # quota and borrowing limit, quanta
    ("c_node_local", "i8", "*, *", INPUT),  # not lent
    ("c_node_nominal", "i8", "*, *", INPUT),  # quota, where it may borrow
    ("c_node_borrows", "i1", "*", INPUT),  # it may borrow something
    ("c_quota_limits", "i1", "*", INPUT),  # of each resource: some node names it
    ("c_mach_flavor", "i4", "M:FLAVORS", INPUT),  # set of machines of the same flavors
    ("c_flavor_column", "i8", "*, *", INPUT),  # column of the quotas of each resource, by set
    ("c_tries", "i4", "*, *", INPUT),  # tries of a queue for a demand, in order, then -1
    ("c_try", "i8", "*, 2", INPUT),  # its sets of machines, as bits, and one of them
    ("c_org_least", "i1", "O:FLAVORS", INPUT),  # it takes the flavor for which it borrows least
    ("c_org_skips", "i1", "O:STRATEGIES", INPUT),  # its jobs pass those that can't start
    ("w_stage_tries", "i4", "G:FLAVORS", INPUT),  # its row of c_tries
    ("w_job_tries", "i4", "*", INPUT),  # that of all slots of a gang
    # groups of jobs with a cap (`sim.engine.kernels.caps`)
    ("c_change_s", "f8", "*", INPUT),  # when a cap changes, ascending
    ("c_change_group", "i4", "*", INPUT),
    ("c_change_cap", "i8", "*", INPUT),
    ("c_group_counts", "i1", "*", INPUT),
    ("c_group_resource", "i4", "*", INPUT),
    ("c_group_blocks", "i1", "*", INPUT),
    # the policy's columns
    ("p_job_key", "f8", "J", INPUT),
    ("p_job_queue", "i4", "J", INPUT),
    ("p_job_run_limit", "i4", "J", INPUT),
    ("p_job_start_gate", "i4", "J", INPUT),
    ("p_job_overflow_queue", "i4", "J", INPUT),
    ("p_job_notify_at", "i4", "J", INPUT),
    ("p_job_service_at", "f8", "J", INPUT),
    ("p_job_expected_s", "f8", "J", INPUT),
    ("p_job_fill_key", "f8", "J", INPUT),
    ("p_job_worth", "f8", "J", INPUT),
    ("p_job_beyond", "f8", "J", INPUT),
    ("p_job_preempt_level", "f8", "J", INPUT),
    ("p_job_preempts_below", "f8", "J", INPUT),
    ("p_job_when_preempted", "i4", "J", INPUT),
    ("p_job_width", "i4", "J", INPUT),
    ("p_job_runs_on", "i8", "J", INPUT),
    ("p_grace", "f8", "*", INPUT),  # grace time of preempted jobs, s
    ("p_stage_key", "f8", "G", INPUT),
    ("p_stage_weight", "f8", "G", INPUT),
    ("p_task_order", "i4", "T:TURNS", INPUT),  # task of each turn
    ("p_task_turn", "i4", "T:TURNS", INPUT),  # turn of each task
    ("p_stage_cost", "f8", "G", INPUT),
    ("p_stage_expected_s", "f8", "G", INPUT),
    ("p_turn_priority", "f8", "T:PRIORITY", INPUT),  # of the task of each turn
    ("p_turn_prefers", "i4", "T:PREFERS", INPUT),
    ("p_pack", "f8", "*", INPUT),  # PACK_REMAINING and so on
    ("p_queue_weight", "f8", "L", INPUT),
    ("p_queue_tier", "i4", "L", INPUT),
    ("p_queue_order", "i4", "L", INPUT),
    ("p_queue_demote_at", "f8", "L", INPUT),
    ("p_queue_demote_to", "i4", "L", INPUT),
    ("p_mix_demand", "i8", "K, *", INPUT),  # quanta, of each type of task
    ("p_mix_allowed", "i8", "K", INPUT),
    ("p_mix_weight", "f8", "K", INPUT),
    # learnt durations: LEARN_GUESS and so on; groups of stages at each level, -1 for none
    ("p_learn", "f8", "*", INPUT),
    ("p_learn_group", "i4", "*, G:LEARNING", INPUT),
    # registers
    ("state_f", "f8", "*", INPUT),  # NOW, TIMER and so on
    ("state_i", "i8", "*", INPUT),  # counters, then the configuration
    # jobs
    ("state_job_turn", "i4", "J", INPUT),  # jobs submitted before it; -1 not submitted
    ("state_job_left", "i4", "J", INPUT),  # unfinished tasks
    ("state_job_started", "i4", "J", INPUT),
    ("state_job_running", "i4", "J", INPUT),
    ("state_job_first_started", "i4", "J", 0),  # started tasks among its first k
    ("state_job_done", "i4", "J", INPUT),
    ("state_job_first_ended", "i4", "J", 0),  # ended tasks among its first k
    ("state_job_done_work", "f8", "J", INPUT),
    ("state_job_first_work", "f8", "J", INPUT),  # task seconds of ended ones of the first k
    ("state_job_remaining", "f8", "J", INPUT),
    ("state_job_attained", "f8", "J", 0),  # at state_job_since
    ("state_job_since", "f8", "J", 0),
    ("state_job_rank", "f8", "J", 0),  # key of the job in its queue
    ("state_job_queue", "i4", "J", 0),  # its kernel queue
    ("state_job_wait_queue", "i4", "J", -1),  # the kernel queue its stages wait in, -1 when parked
    ("state_job_ready_head", "i4", "J", -1),  # first of its stages with a ready task
    ("state_job_used", "i8", "J:USAGE, R", 0),  # quanta of its tasks and held slots
    ("state_job_idle_held", "i4", "J:GANGS", -1),  # held slots that are idle; -1 not admitted
    # elastic jobs: slot of the unit, places with which it begins
    ("state_job_unit", "i4", "J:ELASTIC", 0),
    ("state_job_places", "i4", "J:ELASTIC", 0),
    ("state_job_is_over", "i1", "J:PREEMPTS", 0),  # it runs more tasks than its limit
    ("state_job_evicted", "i4", "J:PREEMPTS", 0),  # its tasks that are given back on trial
    # preemption: when gangs and tasks took their room; units of tasks that stop together (a slot,
    # or S + a job), the slots of each, the work that each would lose, us; and those chosen
    ("state_job_admitted", "f8", "J:PREEMPTS", 0),
    ("state_slot_placed", "f8", "S:PREEMPTS", 0),
    ("state_slot_nth", "i8", "S:PREEMPTS", 0),  # in the order of all placements
    ("state_job_nth", "i8", "J:PREEMPTS", 0),
    ("state_unit", "i4", "S+J:PREEMPTS", 0),
    ("state_unit_first", "i4", "S+J:PREEMPTS", -2),
    ("state_unit_rank", "i8", "S+J:PREEMPTS", 0),
    ("state_unit_next", "i4", "S:PREEMPTS", -1),
    ("state_victim", "i4", "S+J:PREEMPTS", 0),
    ("state_contender", "i4", "J:PREEMPTS", 0),
    # jobs for which a pass or a plan says that others are to stop, and whether each is one
    ("state_preemptor", "i4", "J:PREEMPTS", 0),
    ("state_job_is_preemptor", "i1", "J:PREEMPTS", 0),
    ("state_component_idle", "i4", "*", INPUT),
    ("state_holder", "i4", "J:PREEMPTS", 0),  # gangs that hold slots, and where each stands
    ("state_job_holder", "i4", "J:PREEMPTS", 0),
    # units that have a grace time: when they stop, and for which job; jobs that start then
    ("state_leaving", "i4", "S+J+J:PREEMPTS", 0),
    ("state_leaving_s", "f8", "S+J+J:PREEMPTS", 0),
    ("state_leaving_for", "i4", "S+J+J:PREEMPTS", 0),
    ("state_slot_leaves", "f8", "S:PREEMPTS", inf),
    ("state_job_leaves", "f8", "J:PREEMPTS", inf),
    ("state_job_claims", "f8", "J:PREEMPTS", -inf),  # when its victims have stopped, s
    ("state_claimant", "i4", "J:PREEMPTS", 0),
    ("state_mach_room", "i8", "M:PREEMPTS", 0),  # slots of the job that would preempt
    # caps: jobs that count as running, from when on, whole s left to their limits; and such jobs
    ("state_job_counted", "i1", "J:CAPS", 0),
    ("state_job_counted_s", "f8", "J:CAPS", 0),
    ("state_job_limit_left", "i8", "J:CAPS", INPUT),
    ("state_job_limited", "i1", "J:CAPS", 0),
    ("state_limited_jobs", "i4", "J:CAPS", 0),
    ("state_group_cap", "i8", "*", INPUT),  # jobs, quanta, or quanta × s
    ("state_group_used", "i8", "*", INPUT),
    # jobs that need the outputs of others
    ("state_job_missing", "i4", "J:INPUTS", INPUT),  # hard inputs that do not exist yet
    ("state_job_made", "f8", "J:INPUTS", 0),  # submission by its inputs, once they exist, s
    ("state_job_due", "f8", "J:INPUTS", 0),  # s, if it is in state_due_heap
    ("state_due_heap", "i4", "J:INPUTS", 0),
    ("state_job_unmet", "i4", "J:RELEASES", INPUT),  # dependencies to be met; -1: they never are
    ("state_job_possible", "i4", "J:RELEASES", INPUT),  # dependencies that may be met, or were
    ("state_job_met", "f8", "J:RELEASES", 0),  # when they are met, s
    ("state_job_aside", "i1", "J:RELEASES", 0),  # submitted, and waits for others
    ("state_job_begun", "i1", "J:RELEASES", 0),  # a task of it took room
    ("state_job_first_s", "f8", "J:WINDOWS", nan),  # when one first did, s
    ("state_job_alone", "i1", "J:RELEASES", 0),  # a singleton for which no other is left
    ("state_name_first", "i8", "*", INPUT),  # first entry of each group whose job is left
    ("state_name_running", "i4", "*", INPUT),  # jobs that run
    ("state_failing", "i4", "J:INPUTS", 0),  # jobs that fail together
    # jobs with a limit of run time that have started: a heap by its end
    ("state_job_limit_at", "f8", "J:ENFORCES", inf),  # s, of its entry; inf for none
    ("state_limit_heap", "i4", "J:ENFORCES", 0),
    # stages
    ("state_stage_next", "i4", "G", INPUT),  # tasks started
    ("state_stage_run", "i4", "G:BATCHES", INPUT),  # run of the task that starts next
    ("state_stage_batch", "i4", "G:BATCHES", -1),  # slot of its last batch, -1 for none
    ("state_stage_waiting", "i4", "G", 0),  # ready tasks not started
    ("state_stage_left", "i4", "G", INPUT),  # unfinished tasks
    ("state_stage_done", "i1", "G", 0),  # all its tasks were finished once
    ("state_stage_done_work", "f8", "G", INPUT),  # of finished tasks, if expected_s is set
    ("state_stage_barriers", "i4", "G", INPUT),  # barrier parents not done
    ("state_stage_ready_next", "i4", "G", -1),  # the job's list of ready stages
    ("state_stage_ready_prev", "i4", "G", -1),
    # pairing heap of a queue; or heap of a bucket: left, right and parent
    ("state_stage_child", "i4", "G", -1),
    ("state_stage_sibling", "i4", "G", -1),
    ("state_stage_prev", "i4", "G", -1),
    # stages that open after a lag, in order of their openings
    ("state_opening", "i4", "G:STAGE_LAG", 0),
    ("state_opening_due", "f8", "G:STAGE_LAG", 0),  # s
    # starts that lag behind placements
    ("state_job_launched", "f8", "J:LAUNCHES", 0),  # start of a gang's slots, s
    ("state_task_launches", "i4", "T:LAUNCHES", 0),  # lags that were drawn for the task
    # tasks of stages with one-to-one parents
    ("state_task_missing", "i4", "T:HEAPS", INPUT),  # parents' tasks not done
    ("state_task_heap", "i4", "T:HEAPS", 0),  # a binary heap of ready turns in each stage's range
    # tasks that fail, and those whose output is lost
    ("state_task_kept", "f8", "T:CHECKPOINTS", 0),  # work saved by checkpoints, s at speed 1
    ("state_task_stopped", "i1", "T:CHECKPOINTS", 0),  # it restarts, and takes a time for that
    ("state_task_failed", "i4", "T:FAILS", 0),  # attempts that have failed
    ("state_task_speed", "f8", "T:RUN_SPEEDS", 1.0),  # of its last run
    ("state_task_rerun", "i1", "T:FAILS", 0),  # 1 if it runs again after it was done
    ("state_task_reader", "i4", "T:FAILS", -1),  # the first task that waits for its rerun
    ("state_task_reader_next", "i4", "T:FAILS", -1),
    # queues and organisations
    ("state_queue_root", "i4", "Q", -1),
    ("state_queue_used", "i8", "Q, R", 0),
    ("state_queue_blocked", "i1", "Q", 0),  # 0 no, 1 for room, 2 by its cap, +4 untried
    ("state_queue_blocked_stage", "i4", "Q", -1),
    ("state_queue_barred", "i8", "Q:CLASSES", 0),  # pools that its first ones keep, as bits
    ("state_stage_refused", "i8", "G:STRATEGIES", 0),  # round of placements that refused it last
    ("state_queue_waiting", "i4", "Q", 0),  # waiting stages (skip and pack)
    ("state_queue_deficit", "f8", "Q", 0),  # service that it is owed
    ("state_org_used", "i8", "O, R", 0),
    ("state_org_freed", "i1", "O", 0),  # it released room since the last strict dispatch
    ("state_node_used", "i8", "*, *", INPUT),  # of all queues below it
    ("state_node_taken", "i8", "*, *", INPUT),  # the part that counts against its quota
    ("state_node_planned", "i8", "*, *", INPUT),  # that part at another time
    ("state_queue_head", "i4", "Q:QUOTAS", -1),  # its first waiting stage
    ("state_queue_borrows", "i8", "Q:QUOTAS", 0),  # nodes where that would borrow, as bits
    ("state_queue_height", "i4", "Q:QUOTAS", 0),  # nodes up to the topmost of them
    # machines
    ("state_mach_free", "i8", "M, R", INPUT),
    ("state_mach_lost", "i1", "M", 0),  # bits of the outages that it has now, 0 for none
    ("state_mach_dirty", "i1", "M", 0),  # 1 freed since the last dispatch, 2 to be retried
    ("state_dirty", "i4", "M", 0),  # list of dirty machines
    ("state_mach_held", "i1", "M:HOLDS", 0),  # kept free for another stage
    ("state_mach_shortfall", "f8", "M:HOLDS", 0),  # room that the holder lacks there
    ("state_mach_version", "i8", "M:CHOOSES", 1),  # counts changes of its room
    ("state_device_free", "i8", "*", INPUT),  # quanta
    ("state_score", "f8", "Y, M:SCORES", 0),  # cached, of each kind of stage
    ("state_score_version", "i8", "Y, M:SCORES", 0),
    # machines that may be overbooked
    ("state_mach_rate", "f8", "M:VARIABLE_ENDS, R", 1.0),  # fraction of full speed, by resource
    ("state_mach_slot", "i4", "M:VARIABLE_ENDS", -1),  # the first of its running tasks
    ("state_mach_touched", "i1", "M:VARIABLE_ENDS", 0),  # its room has changed since placement
    ("state_touched", "i4", "M:VARIABLE_ENDS", 0),  # list of touched machines
    # running tasks, or batches of them
    ("state_slot_task", "i4", "S", 0),  # the first of a batch
    ("state_slot_count", "i4", "S:BATCHES", 1),  # tasks of the batch
    ("state_slot_duration", "f8", "S:BATCHES", 0),  # of each of them at speed 1, s
    ("state_slot_batch", "i8", "S:BATCHES", -1),  # number of the batch
    ("state_slot_stage", "i4", "S", 0),
    ("state_slot_machine", "i4", "S", 0),
    ("state_slot_flag", "i1", "S", 0),  # bit 0: among the first k, bit 1: in a held gang slot
    ("state_slot_devices", "i8", "S:CHOOSES", 0),  # bits of devices of its machine
    ("state_slot_start", "f8", "S", 0),
    ("state_slot_free", "i4", "S", INPUT),  # stack
    ("state_slot_next", "i4", "S:VARIABLE_ENDS", -1),  # the tasks of a machine
    ("state_slot_prev", "i4", "S:VARIABLE_ENDS", -1),
    ("state_slot_rate", "f8", "S:VARIABLE_ENDS", 1.0),  # fraction of full speed
    ("state_slot_left", "f8", "S:VARIABLE_ENDS", 0),  # s at full speed, at state_slot_since
    ("state_slot_since", "f8", "S:VARIABLE_ENDS", 0),
    ("state_slot_end", "f8", "S:VARIABLE_ENDS", -1.0),
    # time of its valid heap entry, no later than its end; others are stale
    ("state_slot_entry", "f8", "S:VARIABLE_ENDS", -1.0),
    ("state_ended", "i4", "S:VARIABLE_ENDS", 0),  # the tasks that end at one instant
    ("state_fin_time", "f8", "N", 0),  # binary heap by (time, task)
    ("state_fin_slot", "i4", "N", 0),
    # attained-service crossings: an indexed binary heap of jobs by (time, job)
    ("state_service_time", "f8", "J:SERVICE", 0),
    ("state_service_heap", "i4", "J:SERVICE", 0),
    ("state_service_pos", "i4", "J:SERVICE", -1),
    # waiting stages in order (plans and reservations)
    ("state_scan", "i4", "G:SCAN", -1),  # stage at each position, -1 - stage for a hole
    ("state_scan_queue", "i4", "G:SCAN", 0),
    ("state_scan_rank", "f8", "G:SCAN", 0),
    ("state_scan_key", "f8", "G:SCAN", 0),
    ("state_scan_position", "i4", "G:SCAN", -1),  # position of each stage, -1 for none
    # waiting stages by queue and kind (skip and pack; `sim.engine.kernels.buckets`)
    ("state_stage_bucket", "i4", "G:BUCKETS", -1),
    ("state_stage_stack", "i4", "G:BUCKETS", 0),  # stages of a heap that are still to be visited
    ("state_kind_bucket", "i4", "Y+1:BUCKETS", -1),  # first bucket; the last is of waiting gangs
    ("state_bucket_next", "i4", "Z:BUCKETS", -1),  # next bucket of the kind
    ("state_bucket_position", "i4", "Z:BUCKETS", INPUT),  # in the list
    # bucket at each position of the list, and what it holds
    ("state_bucket_at", "i4", "Z:BUCKETS", INPUT),
    ("state_bucket_queue", "i4", "Z:BUCKETS", 0),
    ("state_bucket_kind", "i4", "Z:BUCKETS", 0),
    ("state_bucket_root", "i4", "Z:BUCKETS", -1),
    ("state_bucket_demand", "f8", "F, Z:BUCKETS", 0),
    ("state_match", "i4", "Z:BUCKETS", 0),  # buckets that fit the current machine
    ("state_min_demand", "i8", "F", 0),  # of any new bucket, quanta
    ("state_room_free", "f8", "F", 0),  # of the current machine
    ("state_room_left", "f8", "BLOCK", 0),  # least room that buckets would leave of a resource
    # the B best stages for a machine, and the search for a bundle
    ("state_bundle_stage", "i4", "B", 0),
    ("state_bundle_score", "f8", "B", 0),
    ("state_bundle_worth", "f8", "B", 0),
    ("state_bundle_remaining", "f8", "B", 0),  # remaining work of its job, over worth
    ("state_bundle_max_tasks", "i8", "B", 0),  # tasks that count
    ("state_bundle_best", "i8", "B", 0),  # tasks of the best bundle
    ("state_bundle_path_stage", "i8", "B", 0),  # current path of the search: a candidate
    ("state_bundle_path_tasks", "i8", "B", 0),  # tasks taken of it
    ("state_bundle_path_score", "f8", "B+1", 0),  # score of the path so far
    ("state_bundle_rest_score", "f8", "B+1", 0),  # score of all tasks from here on
    ("state_bundle_max_density", "f8", "B, F", 0),  # bound on score per quantum from here
    ("state_bundle_min_demand", "i8", "B, F", 0),  # least demand from here on
    ("state_bundle_free", "i8", "B+1, F", 0),  # room left by the path
    # overbooking: the tasks on a machine, last started first
    ("state_resident_slot", "i4", "S:VARIABLE_ENDS", 0),
    ("state_resident_left", "f8", "S:VARIABLE_ENDS", 0),  # s at full speed
    ("state_resident_end", "f8", "S:VARIABLE_ENDS", 0),  # from now, s
    ("state_resident_order", "i4", "S:VARIABLE_ENDS", 0),  # by end
    # free once the first in that order have ended
    ("state_resident_free", "i8", "R, S:VARIABLE_ENDS", 0),
    ("state_resident_work", "f8", "R", 0),  # weighted remaining work of those that demand it
    ("state_resident_end_sum", "f8", "R", 0),  # weighted sum of their ends
    ("state_resident_rate", "f8", "R", 1.0),
    # gangs: jobs whose idle held slots may be used, machines of held slots
    ("state_refill_list", "i4", "J:GANGS", 0),
    ("state_refill_listed", "i1", "J:GANGS", 0),
    ("state_held_machine", "i4", "H", 0),
    ("w_job_exclusive", "i1", "J:EXCLUSIVES", INPUT),
    # what machines of an exclusive gang have beyond its slots, since it last began
    ("state_job_whole", "i8", "J:EXCLUSIVES, R", INPUT),
    ("state_held_devices", "i8", "H:CHOOSES", 0),  # bits of devices of that machine
    ("state_stopping", "i4", "J:GANGS", 0),  # gangs that stop as a whole
    ("state_job_named", "i1", "J:RUNS_ON", 0),  # by the callback that is just over
    ("state_job_stops", "i1", "J:GANGS", 0),  # it is one of them
    # slots of each shape that the free room holds at most, -1 if nobody asks; the shapes counted
    ("state_shape_slots", "i8", "*", INPUT),
    ("state_shape_asked", "i1", "*", INPUT),  # changes of the free room until it is dropped
    ("state_counted", "i4", "*", INPUT),
    ("state_seen_free", "i8", "M:GANGS, F", 0),  # free room that the counts are of
    # reservations: availability profile, waiting jobs in order, running jobs
    ("state_profile_time", "f8", "P:RESERVED", 0),
    ("state_profile_free", "i8", "P:RESERVED", 0),
    ("state_job_reserved", "f8", "J:RESERVED", nan),  # reserved start, s; NaN for none
    ("state_job_run_start", "f8", "J:RESERVED", nan),  # last begin, s
    ("state_job_position", "i4", "J:RESERVED", 0),  # among the waiting jobs: 1 is the first, 0 none
    ("state_waiting_jobs", "i4", "J:RESERVED", 0),
    ("state_running_jobs", "i4", "J:RESERVED", 0),  # by expected end
    # periodic planning (`sim.engine.kernels.rigid.replan_registers`): U nodes, W steps
    ("p_replan", "i8", "*", INPUT),
    ("p_replan_s", "f8", "*", INPUT),
    ("p_completing_s", "f8", "*", INPUT),  # of each job
    ("p_cycle_factors", "f8", "*", INPUT),
    ("p_depth_group", "i4", "*, *", INPUT),  # of each job, in each kind of groups; -1: none
    ("p_depth_most", "i8", "*", INPUT),  # jobs of a group that a cycle tries
    ("p_reserved_in", "i4", "*", INPUT),  # group of each job by which reservations count
    ("p_fits_by", "i4", "*", INPUT),  # resource by which its nodes are compared, -1: none
    ("p_job_array", "i4", "*", INPUT),  # -1: none
    ("p_job_throttle", "i4", "*", INPUT),  # elements of its array that may run; 0: all
    ("state_depth_used", "i8", "*, *", INPUT),
    ("state_reserved_in", "i8", "*", INPUT),
    ("state_array_tried", "i8", "*, *", INPUT),  # by the plan, by the main loop
    ("state_array_reserved", "i8", "*", INPUT),
    ("state_replan", "i8", "*", INPUT),
    ("state_replan_s", "f8", "*", INPUT),
    ("state_job_expected_end", "i8", "J:REPLANNED", 0),  # clock, s
    ("state_job_listed", "i1", "J:REPLANNED", 0),
    ("state_job_back", "f8", "J:REPLANNED", -inf),  # when it is looked at again after a stop, s
    ("state_planned_jobs", "i4", "J:REPLANNED", 0),  # waiting jobs in order
    ("state_plan_jobs", "i4", "J:REPLANNED", 0),  # those of the plan
    ("state_expected_jobs", "i4", "J:REPLANNED", 0),  # running jobs by expected end
    ("state_ending_jobs", "i4", "J:REPLANNED", 0),  # those that may be preempted first
    ("state_completing_jobs", "i4", "J:REPLANNED", 0),  # ended jobs by the time it takes
    ("state_task_node", "i4", "T:REPLANNED", 0),  # of each slot of a job, from its first task on
    ("state_node_busy", "i1", "U:REPLANNED", 0),  # of slots
    ("state_node_completing", "i4", "U:REPLANNED", 0),  # tasks of jobs that it completes
    ("state_node_now", "i8", "U:REPLANNED, R", 0),  # free quanta
    ("state_open", "i4", "U:REPLANNED", 0),  # nodes on which some task may fit now
    ("state_node_future", "i8", "U:REPLANNED, R", 0),  # after expected ends
    ("state_node_allowed", "i1", "U:REPLANNED", 0),  # for the job in question
    ("state_node_usable", "i1", "U:REPLANNED", 0),  # it may run there
    ("state_node_barred", "i1", "U:REPLANNED", 0),  # others wait for it
    ("state_node_room", "i8", "U:REPLANNED", 0),  # its tasks that fit
    ("state_node_fit", "i8", "U:REPLANNED", 0),  # what is free of the resource by which it goes
    ("state_node_tasks", "i8", "U:REPLANNED", 0),  # its tasks that are placed there
    # nodes of the running jobs, what is free on each then, and the end of each job's nodes
    ("state_vacated_node", "i4", "S:REPLANNED", 0),
    ("state_vacated_free", "i8", "S:REPLANNED, F", 0),
    ("state_vacated_end", "i4", "J:REPLANNED", 0),
    ("state_wants", "i8", "F", 0),  # of each of its tasks, quanta
    ("state_node_by", "i8", "U:REPLANNED", 0),  # its tasks that fit by some time
    # of kinds of like jobs: ends that were looked at, tasks that fit now, then, and by each end
    ("w_job_like", "i4", "J:REPLANNED", INPUT),
    ("state_like", "i4", "*", INPUT),
    ("state_like_ended", "i4", "*", INPUT),
    ("state_node_first", "i8", "*, *", INPUT),
    ("state_node_later", "i8", "*, *", INPUT),
    ("state_gain", "i8", "*, *", INPUT),
    ("state_node_left", "i8", "U:COMPONENTS, R", 0),  # what a job's components leave
    ("state_node_ended", "i8", "U:COMPONENTS, R", 0),  # free once running jobs have ended
    ("state_row_bound", "i4", "U+1:REPLANNED", 0),  # of a row with room: first node, after the last
    ("state_row_room", "i8", "U:REPLANNED", 0),  # 0 once it is taken
    ("state_row_fit", "i8", "U:REPLANNED", 0),
    ("state_step_begin", "i8", "W:REPLANNED", 0),  # clock, s
    ("state_step_row", "i4", "W:REPLANNED", 0),  # of state_step_nodes
    ("state_step_frees", "i1", "W:REPLANNED", 0),  # some node gets free as it begins
    # reservations: times, clock, s; first of their nodes; their order by begin and by end
    ("state_reserved_from", "i8", "W:REPLANNED", 0),
    ("state_reserved_until", "i8", "W:REPLANNED", 0),
    ("state_reserved_node0", "i4", "W+1:REPLANNED", 0),
    ("state_reserved_node", "i4", "T:REPLANNED", 0),
    ("state_begins", "i4", "W:REPLANNED", 0),
    ("state_ends", "i4", "W:REPLANNED", 0),
    ("state_node_held", "i4", "U:REPLANNED", 0),  # reservations in question that have it
    ("state_chosen", "i4", "U:REPLANNED", 0),  # nodes with tasks of the job
    ("state_step_nodes", "i1", "W:REPLANNED, U:REPLANNED", 0),  # 0 if it is reserved
    # claims of jobs on places (`sim.engine.kernels.rigid.places`): D places, A entries of claims
    ("state_claim_entries", "i4", "J:PLACES", 0),
    ("state_entry_place", "i4", "A:PLACES", 0),
    ("state_entry_slots", "i4", "A:PLACES", 0),
    ("state_entry_job", "i4", "A:PLACES", 0),
    ("state_entry_room", "i8", "A:PLACES, F", 0),  # quanta
    ("state_change_time", "f8", "A+A:PLACES", 0),  # s
    ("state_change_next", "i4", "A+A:PLACES", -1),  # the next one of its place
    ("state_place_first", "i4", "D:PLACES", -1),  # first change
    ("state_place_slots", "i4", "D:PLACES", 0),  # of the job in question
    ("state_place_room", "i8", "D:PLACES, F", 0),  # least, while it would run
    ("state_recount", "i4", "D:PLACES", 0),  # machines whose slots are counted anew
    ("state_room", "i8", "*, F", INPUT),  # of a place at two times, and of all of them
    ("state_free", "i8", "F", 0),  # of all machines
    # their waiting jobs, merged: of each queue the next position, its last, and its reservations
    ("state_queue_next", "i4", "Q:MERGED", 0),
    ("state_queue_end", "i4", "Q:MERGED", 0),
    ("state_queue_reserved", "i4", "Q:MERGED", 0),
    # learnt durations: of each group, mean and sum (s) and number of its finished tasks, and stages
    ("state_learn_mean", "f8", "*", INPUT),
    ("state_learn_work", "f8", "*", INPUT),
    ("state_learn_tasks", "f8", "*", INPUT),
    ("state_learn_runs", "i8", "*", INPUT),
    ("state_live", "i4", "G:LEARNING", 0),  # unfinished stages of jobs that have arrived, ascending
    ("state_entered", "i4", "J:LEARNING", 0),  # jobs that arrive at this instant
    ("state_refined", "i4", "J:LEARNING", 0),  # jobs to read anew
    ("state_seen_left", "i4", "J:LEARNING", 0),  # when the job was last refined
    ("state_seen_started", "i4", "J:LEARNING", 0),
    # checked runs: sums over running tasks and held slots, of each account
    ("state_sum_machine", "i8", "M:CHECKS, R", 0),
    ("state_sum_job", "i8", "J:CHECKS, R", 0),
    ("state_sum_running", "i4", "J:CHECKS", 0),
    ("state_sum_queue", "i8", "Q:CHECKS, R", 0),
    ("state_sum_org", "i8", "O:CHECKS, R", 0),
    ("state_sum_node", "i8", "*, *", INPUT),
    ("state_sum_group", "i8", "*", INPUT),
    ("state_sum_is_free", "i1", "S:CHECKS", 0),  # the slot is on the stack of free ones
    # events for the policy
    ("state_event_kind", "i4", "V", 0),
    ("state_event_row", "i4", "V", 0),
    ("state_event_time", "f8", "V:DEFERS", 0),  # s
    # results
    ("out_job_submit", "f8", "J", INPUT),
    ("out_job_start", "f8", "J", INPUT),
    ("out_job_finish", "f8", "J", INPUT),
    ("out_job_failed", "i1", "J", INPUT),
    ("out_job_eligible", "f8", "J:RELEASES", nan),
    ("out_job_estimate", "f8", "J:LEARNING", INPUT),  # s
    ("out_task_start", "f8", "T:TASK_RECORDS", nan),
    ("out_task_finish", "f8", "T:TASK_RECORDS", nan),
    ("out_task_machine", "i4", "T:TASK_RECORDS", -1),
    ("out_task_placed", "f8", "T:PLACED", nan),  # s, earlier than its start by its lag
    # batches since the caller last emptied these; each ends after the duration of its run
    ("out_batch_task", "i4", "C:BATCH_RECORDS", 0),  # its first
    ("out_batch_count", "i4", "C:BATCH_RECORDS", 0),
    ("out_batch_start", "f8", "C:BATCH_RECORDS", 0),  # s
    ("out_batch_machine", "i4", "C:BATCH_RECORDS", 0),
    # stopped attempts since the caller last emptied these
    ("out_stop_task", "i4", "I:STOPS", 0),
    ("out_stop_machine", "i4", "I:STOPS", 0),
    ("out_stop_start", "f8", "I:STOPS", 0),  # s
    ("out_stop_time", "f8", "I:STOPS", 0),  # s
    ("out_stop_reason", "i1", "I:STOPS", 0),  # `sim.engine.kernels.faults.restart`
    ("out_stop_kept", "f8", "I:STOPS", 0),  # s, of its time
    ("out_task_devices", "i8", "T:DEVICES", 0),
)
