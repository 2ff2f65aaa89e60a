"""Sweeps in an allocation of Slurm's: submission, what is shown meanwhile, and Ray inside.

`sweep.execution.on_slurm.batch_job` submits one job and follows it from a login node;
`sweep.execution.on_slurm.allocation` is what the job runs: Ray on each of its nodes, and the sweep
on the first. The nodes need the same folders as the login node, and nothing else.
"""
