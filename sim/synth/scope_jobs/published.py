"""What is published of Jockey's jobs (Ferguson et al., EuroSys 2012), with where it stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A column of Table 2."""

    median_s: float  # of the run times of all vertices, s
    p90_s: float
    fastest_p90_s: float  # 90th percentile of the fastest and of the slowest stage, s
    slowest_p90_s: float
    n_stages: int  # stages, those that begin with a full shuffle, and vertices (tasks)
    n_barriers: int
    n_vertices: int


A_P90_S = 88.0
"""Chosen: the table leaves job A's out. Its median times the geometric mean of the other six jobs'
ratios of the 90th percentile to the median, 5.4."""

TABLE_2 = {
    "A": Published(16.3, A_P90_S, 4.0, 126.3, 23, 6, 681),
    "B": Published(4.0, 54.1, 3.3, 116.7, 14, 0, 1605),
    "C": Published(2.6, 5.7, 1.7, 21.9, 16, 3, 5751),
    "D": Published(6.1, 25.1, 1.4, 72.6, 24, 3, 3897),
    "E": Published(8.0, 130.0, 3.9, 320.6, 11, 1, 2033),
    "F": Published(3.6, 17.4, 3.3, 110.4, 26, 1, 6139),
    "G": Published(3.0, 7.7, 1.6, 68.3, 110, 15, 8496),
}
"""Statistics of the seven jobs."""

INIT_S = (5.8, 8.4)
"""Median and 90th percentile of what goes before a vertex runs, s: job F's training (Table 3)."""

INIT_EXPONENT = 1 / 3
"""Where a run needs x times the work, that takes x to this power as long: ln(6.8 / 5.8) over
ln(23.5 / 12.7), and ln(6.9 / 5.8) over ln(18.5 / 12.7), are 0.26 and 0.46 (Table 3)."""

TABLE_3 = {
    "job 1": (23.5, 6.8, 11.6, 5.8, 36.6),
    "job 2": (18.5, 6.9, 11.4, 5.2, 27.1),
}
"""Two runs of job F: work in hours; median and 90th percentile of queueing and of latency, s."""

WORK_H = {"training": 12.7} | {run: row[0] for run, row in TABLE_3.items()}
"""Total work of job F in training and of the two runs of Table 3, hours."""

PERCENTILES = (10, 50, 90, 99)
COV = {"all": (0.15, 0.28, 0.59, 1.55), "like inputs": (0.13, 0.20, 0.37, 0.85)}
"""Table 1: variation of completion time over the runs of a job, at `PERCENTILES` over jobs; of all
runs, and of those whose inputs differ by at most 10 % in size."""

TOKENS = 100
"""The most that a job was guaranteed (§5.1)."""

UTILIZATION = 0.8
"""Mean of the cluster's (§5.1)."""
