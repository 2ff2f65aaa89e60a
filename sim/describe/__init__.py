"""Characterise a workload as Tian et al., SoCC 2019, §3 to §7.1, characterise Alibaba's.

`describe` measures a workload, and what is put beside it, into `Description`: numbers by section,
tables, and one HTML page. A module a section measures; `paper` holds what the paper found.
"""

from sim.describe.dataset import Dataset
from sim.describe.description import Description
from sim.describe.run import describe

__all__ = ["Dataset", "Description", "describe"]
