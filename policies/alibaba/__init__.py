"""Production DAGs of Alibaba: the study, its trace, and a generator (Tian et al., SoCC 2019)."""
