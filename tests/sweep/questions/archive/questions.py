"""Words of small sweeps, a sweep for each kind of question."""

QUESTIONS = {
    "parameters": ("policy=fifo,las", "policy.queues=2,3", "seed=0,1", "metrics=jct_mean_s"),
    "failures": ("policy=fifo,las", "seed=0,1,2", "baseline=fifo"),
    "seeds": ("policy=fifo,las", "seeds=auto", "seeds_width=0.2"),
    "a target": ("policy=fifo,las", "capacity=interval(0.5,2)", "target.metric=jct_mean_s",
                 "target.at_most=50", "seed=0,1"),
    "a search": ("policy=las", "policy.queues=interval(2,9)", "search.metric=jct_mean_s",
                 "search.cells=40", "search.seeds=2", "search.test_seeds=5"),
    "what if": ("policy=fifo", "what_if.load=2", "seed=0,1", "cluster.count=4"),
    "what restores it": ("policy=fifo,las", "what_if.load=1.3", "what_if.restore=jct_mean_s",
                         "seed=0,1", "cluster.count=2"),
    "an own option": ("policy=fifo,lent", "seed=0,1", "baseline=fifo"),
}  # fmt: skip
