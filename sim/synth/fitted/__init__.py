"""Generator that can be fitted to any workload: `fit`, probability tables, drawing of jobs.

`fit` counts the `tables` of a workload, which `tables_file` reads and writes. `jobs` draws from
them: DAGs (Tian et al.'s Algorithm 2, as printed and improved), attributes of stages, independently
or jointly, and arrivals. `policies.alibaba.synth` does so from the tables of Alibaba's trace or any
others; `policies.wing.programs` turns such jobs into runs of recurring programs.
"""
