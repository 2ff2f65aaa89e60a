"""Probability tables that any workload is fitted into, and what is drawn from them.

Numbers of stages and DAGs (Tian et al.'s Algorithm 2, as printed and improved), what stages have,
each on its own or jointly, and when jobs come. `sim.synth.alibaba2018` makes jobs of them, by the
tables of Alibaba's trace or any others; `sim.synth.programs` makes runs of programs of such jobs.
"""
