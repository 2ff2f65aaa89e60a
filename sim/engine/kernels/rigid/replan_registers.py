"""Periodic planning: the registers of its options and of its state (`sim.engine.plan.replan`)."""

# p_replan, whole numbers
(
    PLANS,
    RESOLUTION,
    WINDOW,
    FIRST_WINDOW,
    LINEAR,
    KILL_WAIT,
    DEPTH,
    RESERVED,
    MAIN_DEPTH,
    MAIN_INTERVAL,
    MAIN_DELAY,
    N_DEPTHS,  # kinds of groups whose jobs a plan counts; those of the main loop come after them
    STARTS,
    MAIN_STARTS,
    ARRAY_RESERVED,
    CONTINUES,
) = range(16)

# p_replan_s
INTERVAL, CYCLE, JOB_CYCLE, CLOCK, POLL_PHASE, MAX, YIELD, SLEEP, REQUEUE = range(9)

# state_replan
(
    N_EXPECTED,  # running jobs
    FIRST_COMPLETING,  # jobs that nodes complete: positions in state_completing_jobs
    END_COMPLETING,
    N_SUBMITTED,  # jobs that the scheduler knows of
    LAST_POLL,  # the poll of the last pass of the main loop
    NEXT_FULL,  # the poll of the next pass over all jobs
    IS_REQUESTED,  # an event asks for a pass
    LAST_PLAN,  # clock, s
    LAST_UPDATE,  # clock, s
    IS_IDLE,  # the planning thread polls for an update
    N_STEPS,  # of the table of reservations
    N_RECORDS,  # steps that it ever had in this plan
    HORIZON,  # its end, clock, s
    N_PLANS,
    N_FREE,  # free slots of a pool, in this cycle
    N_OPEN,  # nodes on which some task may fit, in this cycle
    N_LISTED,  # jobs of the plan
    POSITION,  # of the next of them, if the plan sleeps; 0 if none is under way
    N_TRIED,
    N_STARTED,
    IS_CHANGED,  # jobs or nodes have, since its part began
    IS_FULL,  # it tries no further jobs
    N_GONE,  # running jobs that the job in question may preempt: they come first
    N_KNOWN,  # running jobs of which it is listed what they vacate
    LIKE,  # row of what is kept for jobs like the one in question
    N_PASSED,  # running jobs that end by the time it is tried at
    FIRST_STEP,  # of the table that is not over when it is tried
    N_RESERVED,  # reservations; those that have begun by its end then, and are over by its begin
    N_BEGUN,
    N_OVER,
    HAS_USABLE,  # its usable nodes are listed
    N_USABLE,
    ROOM_BY,  # its tasks that fit the allowed nodes then
    RESERVED_FROM,  # begin of the last reservation, clock, s; -1: a job has started since
    BY_PREEMPTING,  # it fits now if those that it may preempt are gone
    N_PREEMPTORS,  # jobs for which others are to stop now
) = range(36)
N_STATE = 36

# state_replan_s
REQUESTED, WAKE, BEGUN, PREEMPTORS_AT = range(4)
N_STATE_S = 4
