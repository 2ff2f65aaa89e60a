"""Characterise a workload as Tian et al., SoCC 2019, §3 to §7.1, characterise Alibaba's.

`describe` measures a workload, and what is put beside it, into `Description`: numbers by section,
and tables; `write_page` writes them and one HTML page. `paper` holds what the paper found.
`sim.describe.slearn` measures what another paper does.
"""

from sim.describe.dataset import Dataset
from sim.describe.page import write_page
from sim.describe.run import describe
from sim.describe.statistics import Description

__all__ = ["Dataset", "Description", "describe", "write_page"]
