"""The 21 recurring jobs: seven as in Table 2, fourteen more of their kind."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sim.base.random import stream
from sim.synth.scope_jobs.structure import Structure, draw_structure
from sim.synth.scope_jobs.times import TABLE_2, Law, draw_law, fit_law

SEVEN = tuple(TABLE_2)
NAMES = (*SEVEN, *"HIJKLMNOPQRSTU")
"""The jobs: A to G are Table 2's, H to U are drawn like them."""

STAGES, VERTICES = (10, 60), (700, 8500)
FASTEST_P90_S, SLOWEST_P90_S = (1.4, 4.0), (22.0, 320.0)
"""Between which the others are drawn, evenly in the logarithm: about the ranges of Table 2."""
BARRIERS = (0.0, 0.25)
"""What part of the stages begins with a full shuffle, evenly; Table 2 has 0 to 0.26."""
BULK, SKEW, SIGMA = (0.35, 1.0), (0.5, 2.5), (0.25, 0.5)
"""Of how the times of stages spread (`sim.synth.scope_jobs.times`)."""


NTH = {"E": 1}
"""Which draw of the structure is taken where it is not the first: the first in which the known
deadline leaves the job at least twice the time that it takes with 100 tokens."""
ALONE_MIN = (10.0, 25.0)
"""How long one of the others takes alone with 100 tokens, minutes; others are drawn again, as the
paper left out what is too short or too big (§5.1)."""


@dataclass(frozen=True, eq=False)
class Template:
    """A recurring job."""

    name: str  # what it is called
    structure: Structure  # its g stages
    law: Law  # how long their vertices run in a run like the one that was published
    place: float  # how much its runs vary: its place among all recurring jobs, between 0 and 1
    # how much the run that was recorded took: its place among all runs of the job, 0 to 1
    recorded: float = 0.5


@lru_cache(maxsize=len(NAMES))
def template(name: str) -> Template:
    """Return one of the jobs of `NAMES`.

    Their places among all recurring jobs, and those of the recorded among all runs of a job, are
    spread evenly, over the seven and over the others.
    """
    if name in TABLE_2:
        rng = _rng(name, NTH.get(name, 0))
        wanted = TABLE_2[name]
        structure = draw_structure(wanted.n_stages, wanted.n_barriers, wanted.n_vertices, rng)
        law = fit_law(structure.n_tasks, wanted, rng)
        return Template(name, structure, law, *_places(name, SEVEN))
    places = _places(name, NAMES[len(SEVEN) :])
    drawn = (draw_template(name, _rng(name, n), VERTICES, *places) for n in itertools.count())
    return next(one for one in drawn if _fits(one))


def _rng(name: str, n: int) -> np.random.Generator:
    return stream(0, "synth", "scope_jobs", "template", name, n)


def _fits(one: Template) -> bool:
    from sim.synth.scope_jobs.alone import alone_s

    low, high = ALONE_MIN
    return low <= alone_s(one) / 60 <= high


def draw_template(
    name: str,
    rng: np.random.Generator,
    vertices: tuple[int, int],
    place: float = 0.5,
    recorded: float = 0.5,
) -> Template:
    """Draw a job like the seven, with a number of vertices in a range."""
    n_stages = round(_between(STAGES, rng))
    n_barriers = round(n_stages * rng.uniform(*BARRIERS))
    n_vertices = max(round(_between(vertices, rng)), 6 * n_stages)
    structure = draw_structure(n_stages, n_barriers, n_vertices, rng)
    ends = (_between(FASTEST_P90_S, rng), _between(SLOWEST_P90_S, rng))
    shape = (rng.uniform(*BULK), _between(SKEW, rng))
    law = draw_law(structure.n_tasks, shape, ends, rng.uniform(*SIGMA), rng)
    return Template(name, structure, law, place, recorded)


def _between(ends: tuple[float, float], rng: np.random.Generator) -> float:
    low, high = np.log(ends)
    return float(np.exp(rng.uniform(low, high)))


def _places(name: str, names: tuple[str, ...]) -> tuple[float, float]:
    rng = stream(0, "synth", "scope_jobs", "places", len(names))
    at = names.index(name)
    place, recorded = ((rng.permutation(len(names))[at] + 0.5) / len(names) for _ in range(2))
    return float(place), float(recorded)
