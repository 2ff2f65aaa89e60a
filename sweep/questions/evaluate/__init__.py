"""Evaluation of candidate policies for loops: a policy from a file, judged by who can't be fooled.

`evaluator` keeps workloads, baseline and kernels in memory. A candidate is read and called in a
process of its own (`nursery`, `candidate`, `seal`), which sees of each workload only what the
policy may know (`public`) and answers with decisions (`messages`, `plans`). The simulation runs
here (`remote`), and schedules are verified (`sim.check.schedule`) before they count (`scores`).
"""
