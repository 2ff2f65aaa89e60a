"""Builds of large code bases: compilation, code analysis, linking, tests, packaging.

The paper (§9) names the kinds of tasks and says that they differ in run time and resources; the
numbers are assumptions. A build has libraries, each with:

- for one in five, a step that generates code, before it is compiled;
- compilation, a task a source file: cpu-bound, short;
- code analysis, a task a file, one-to-one after its compilation: more cpu and memory;
- a link after all of its compilation and after the links of up to three earlier libraries: one
  task, much memory and disk;
- for three in five, tests after the link: long, of all kinds of demands, some over the network.

A last task packages what every link and every test has made.
"""

from __future__ import annotations

import numpy as np

from sim.synth._dag import Dag
from sim.synth.other_domains.recipe import Recipe

LIBRARIES_P50, LIBRARIES_SIGMA, MOST_LIBRARIES = 10.0, 0.8, 120
FILES_P50, FILES_SIGMA, MOST_FILES = 8.0, 1.0, 300
TESTS_P50, TESTS_SIGMA, MOST_TESTS = 5.0, 1.0, 200
GENERATED, TESTED, ANALYSED = 0.2, 0.6, 0.5

#       median s, sigma, then from-to of cpu, mem, disk, net as parts of a machine
GENERATE = (4.0, 0.7, (0.1, 0.2), (0.05, 0.2), (0.05, 0.2), (0.0, 0.05))
COMPILE = (5.0, 0.7, (0.12, 0.13), (0.03, 0.15), (0.02, 0.1), (0.0, 0.02))
ANALYSE = (8.0, 0.7, (0.2, 0.3), (0.1, 0.3), (0.02, 0.05), (0.0, 0.02))
LINK = (9.0, 0.9, (0.12, 0.3), (0.2, 0.7), (0.2, 0.6), (0.0, 0.05))
TEST = (15.0, 1.1, (0.05, 0.5), (0.05, 0.4), (0.0, 0.3), (0.0, 0.4))
PACKAGE = (12.0, 0.6, (0.1, 0.2), (0.1, 0.3), (0.4, 0.8), (0.2, 0.6))


def draw_build(rng: np.random.Generator) -> Dag:
    """Draw one build."""
    recipe = Recipe(rng)
    links: list[int] = []
    ends: list[int] = []
    for i in range(_count(rng, LIBRARIES_P50, LIBRARIES_SIGMA, MOST_LIBRARIES)):
        files = _count(rng, FILES_P50, FILES_SIGMA, MOST_FILES)
        before = []
        if rng.random() < GENERATED:
            before = [recipe.stage(f"generate{i}", 1, GENERATE)]
        compiled = recipe.stage(f"compile{i}", files, COMPILE, barrier=before)
        if rng.random() < ANALYSED:
            ends.append(recipe.stage(f"analyse{i}", files, ANALYSE, one_to_one=[compiled]))
        n_used = min(len(links), int(rng.integers(0, 4)))
        used = rng.choice(links, n_used, replace=False).tolist() if n_used else []
        links.append(recipe.stage(f"link{i}", 1, LINK, barrier=[compiled, *used]))
        ends.append(links[-1])
        if rng.random() < TESTED:
            tests = _count(rng, TESTS_P50, TESTS_SIGMA, MOST_TESTS)
            ends.append(recipe.stage(f"test{i}", tests, TEST, barrier=[links[-1]]))
    recipe.stage("package", 1, PACKAGE, barrier=ends)
    return recipe.dag()


def _count(rng: np.random.Generator, median: float, sigma: float, most: int) -> int:
    return int(np.clip(np.rint(median * np.exp(sigma * rng.normal())), 1, most))
