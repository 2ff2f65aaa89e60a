"""SLearn: job sizes learnt from pilot tasks, or from history (NSDI 2022).

`gs` is the generic scheduler with each of its estimators; `pilots` has SLearn's adaptive ratio,
`history` is 3Sigma's predictor over `histogram`, `posterior` combines pilots with `priors` from
history.
"""
