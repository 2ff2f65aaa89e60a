"""Why a policy loses against another: the jobs that lost and won most, and what they waited for.

`attempts` and `room` read who held what from a run; `chains` follow a job back from its end to its
submission, and `splits` say of each wait what it was for. `pairing` runs a cell and that of the
other policy; `explanation` compares them, `groups` finds whose loss it is, `sentences` say so.
"""
