"""Jockey: jobs meet their deadlines with as few guaranteed tokens as they need.

Ferguson, Bodik, Kandula, Boutin and Fonseca, *Jockey: guaranteed job latency in data parallel
clusters*, EuroSys 2012. `control` is its control law.
"""
