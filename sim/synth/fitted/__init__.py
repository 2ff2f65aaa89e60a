"""The generator that any workload is fitted into: `fit`, tables, jobs drawn from them.

`fit` counts what a workload is like; `tables` is what it counts, `tables_file` its file; `jobs`
draws: numbers of stages and DAGs (Tian et al.'s Algorithm 2, as printed and improved), what stages
have, each on its own or jointly, and when jobs come. `sim.synth.alibaba2018` does so from the
tables of Alibaba's trace or any others; `sim.synth.programs` makes runs of programs of such jobs.
"""
