"""Requests to an internet service: workflows of dependent RPCs on one pool of servers.

The paper (§9) gives a search query as its example: spelling is checked before the index is looked
up, videos and images are looked up in parallel, and RPCs differ in run time and resources. The
numbers are assumptions. A request has:

- a front end, then a spelling check;
- two to eight verticals (web, images, videos, news, ...), each looking its shards up, a task a
  shard: memory and disk; ranking each shard's answers one-to-one: cpu; gathering them;
- for two in five verticals, fetching of documents after that, a task a result: network and disk;
- advertisements, for half of the requests, beside the verticals;
- blending of everything, then rendering.
"""

from __future__ import annotations

import numpy as np

from sim.synth._dag import Dag
from sim.synth.other_domains.recipe import Recipe

VERTICALS = ("web", "images", "videos", "news", "maps", "shops", "books", "answers")
FEWEST_VERTICALS = 2
SHARDS_P50, SHARDS_SIGMA, MOST_SHARDS = 12.0, 0.9, 400
MOST_RESULTS = 20
FETCHED, ADVERTISED = 0.4, 0.5

FRONT = (0.003, 0.4, (0.02, 0.05), (0.01, 0.03), (0.0, 0.01), (0.05, 0.1))
SPELL = (0.008, 0.5, (0.1, 0.3), (0.05, 0.2), (0.0, 0.02), (0.01, 0.02))
LOOK_UP = (0.02, 0.7, (0.03, 0.1), (0.1, 0.5), (0.1, 0.6), (0.01, 0.05))
RANK = (0.015, 0.7, (0.15, 0.6), (0.02, 0.1), (0.0, 0.02), (0.01, 0.05))
GATHER = (0.006, 0.5, (0.05, 0.15), (0.02, 0.1), (0.0, 0.01), (0.2, 0.6))
FETCH = (0.03, 0.8, (0.02, 0.08), (0.03, 0.1), (0.1, 0.5), (0.1, 0.5))
ADVERTISE = (0.03, 0.5, (0.2, 0.6), (0.05, 0.2), (0.0, 0.05), (0.05, 0.2))
BLEND = (0.01, 0.5, (0.1, 0.4), (0.05, 0.2), (0.0, 0.02), (0.05, 0.2))
RENDER = (0.012, 0.5, (0.1, 0.3), (0.02, 0.1), (0.0, 0.02), (0.1, 0.4))


def draw_request(rng: np.random.Generator) -> Dag:
    """Draw one request."""
    recipe = Recipe(rng)
    front = recipe.stage("front", 1, FRONT)
    spelled = recipe.stage("spell", 1, SPELL, barrier=[front])
    ends = []
    n_verticals = int(rng.integers(FEWEST_VERTICALS, len(VERTICALS) + 1))
    for name in VERTICALS[:n_verticals]:
        shards = np.rint(SHARDS_P50 * np.exp(SHARDS_SIGMA * rng.normal()))
        n = int(np.clip(shards, 1, MOST_SHARDS))
        found = recipe.stage(f"look up {name}", n, LOOK_UP, barrier=[spelled])
        ranked = recipe.stage(f"rank {name}", n, RANK, one_to_one=[found])
        last = recipe.stage(f"gather {name}", 1, GATHER, barrier=[ranked])
        if rng.random() < FETCHED:
            results = int(rng.integers(1, MOST_RESULTS + 1))
            last = recipe.stage(f"fetch {name}", results, FETCH, barrier=[last])
        ends.append(last)
    if rng.random() < ADVERTISED:
        ends.append(recipe.stage("advertise", 1, ADVERTISE, barrier=[front]))
    blended = recipe.stage("blend", 1, BLEND, barrier=ends)
    recipe.stage("render", 1, RENDER, barrier=[blended])
    return recipe.dag()
