"""Expected durations of tasks, by stage: one protocol, and an estimator for each source.

`durations` has the protocol, the truth, what users declare, and means of recorded runs;
`stage_profiles` learns from finished stages, as DAGPS does; `priors` is the prior of SLearn with
its variance, `past` Wing's statistics of jobs, `profile` Jockey's distributions. Which jobs are
similar stands in `similar`. A policy with the parameter ``knowledge`` inherits from `by_duration`;
`learnt` keeps the plan up to date.
"""
