"""Wing: jobs by the value of their own and their dependents' output (Chung et al., OSDI 2020).

`knowledge` has predicted and true values of jobs; `efficiency` has the static policies, and those
whose values decay while jobs wait; `rescue` goes beyond the paper.
"""
