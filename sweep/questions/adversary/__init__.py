"""Adversary: the workload on which one policy loses most against another.

`start` draws workloads of a generator, `changes` varies their jobs, `anneal` searches, `shrink`
leaves the smallest instance that still shows the loss. `duel` runs the two policies, in this
process; `answer` writes what was found.
"""
