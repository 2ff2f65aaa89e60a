"""Wing: jobs by the value of their own and their dependents' output (Chung et al., OSDI 2020).

`policies.wing.past` predicts values of jobs, `truth` has the true ones; `efficiency` has the
static policies, and those whose values decay while jobs wait; `rescue` goes beyond the paper.
"""
