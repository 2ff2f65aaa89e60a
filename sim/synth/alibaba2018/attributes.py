"""What the stages of synthesized DAGs have: tasks, a duration, demands; drawn apart or jointly.

Jointly: a Gaussian copula over the tables, along each DAG. Each stage has a latent number for each
metric (duration, number of tasks, demands), standard normal, whose rank picks the metric's value
from its table. The latent numbers are the sum of the job's own and of the stage's, which follow
those of the stage's first child: most stages have one child, so that this keeps the correlation of
nearly all parents with their children, along with that within a stage and that of any two stages of
a job. Jobs differ in how much their stages vary (one of two spreads, as likely), and a stage may
take a value over from its child as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import Graphs
from sim.synth.alibaba2018.tables import ROLES, Histogram, Joint, Tables
from sim.synth.alibaba2018.tian_algorithm2 import uniforms
from sim.workload.schema import DEMAND_PREFIX


def draw_attributes(
    tables: Tables, graphs: Graphs, seed: int, joint: bool = False, most_tasks: int | None = None
) -> dict[str, NDArray[Any]]:
    """Draw what each stage has, each attribute on its own or all of them jointly."""
    sources = tables.attributes
    if most_tasks is not None:
        sources["n_tasks"] = sources["n_tasks"].up_to(most_tasks)
    if not joint:
        drawn = {
            name: table.draw(uniforms(seed, name, graphs.n_stages))
            for name, table in sources.items()
        }
    elif tables.joint is None:
        raise InputError(
            "the tables don't tell what attributes have to do with each other (joint); fit them "
            "from a workload whose jobs have dependencies, or take joint=false",
            rule="no joint",
        )
    else:
        drawn = draw_jointly(tables.joint, sources, graphs, seed)
    columns: dict[str, NDArray[Any]] = {
        "n_tasks": drawn["n_tasks"].astype(np.int32),
        "duration_s": drawn["duration_s"],
    }
    for name in tables.demand:
        columns[DEMAND_PREFIX + name] = drawn[f"demand {name}"]
    return columns


def draw_jointly(
    joint: Joint, tables: dict[str, Histogram], graphs: Graphs, seed: int
) -> dict[str, F8]:
    """Draw all metrics of all stages."""
    from sim.synth.alibaba2018.kernels import along  # loads numba

    uniform = latent_uniform(joint, graphs, seed)
    role = np.minimum(graphs.n_parents, ROLES - 1)
    values = np.empty_like(uniform)
    for m, (name, ranks) in enumerate(joint.ranks.items()):
        values[:, m] = tables[name].draw(ranks.rank(uniform[:, m], role))
    along.take_over(
        graphs.order, graphs.edge0, graphs.edge_child,
        _stream(seed, "taken over").random(values.shape), joint.taken_over, values,
    )  # fmt: skip
    return {name: values[:, m].copy() for m, name in enumerate(joint.ranks)}


def latent_uniform(joint: Joint, graphs: Graphs, seed: int) -> F8:
    """Draw the latent numbers of all stages, (G, M), as uniforms in their distribution."""
    from scipy.special import ndtr

    from sim.synth.alibaba2018.kernels import along  # loads numba

    n = len(joint.ranks)
    latent = _stream(seed, "stage").standard_normal((graphs.n_stages, n))
    along.follow(
        graphs.order, graphs.edge0, graphs.edge_child, joint.root, joint.pull, joint.noise, latent
    )
    shared = _stream(seed, "job").standard_normal((graphs.n_jobs, n)) @ joint.job.T
    wide = _stream(seed, "unequal").random(graphs.n_jobs) < 0.5
    variance = 1.0 + joint.unequal * np.where(wide, 1.0, -1.0)
    latent *= np.repeat(np.sqrt(variance), graphs.job_n_stages)[:, None]
    latent += np.repeat(shared, graphs.job_n_stages, axis=0)
    of_job = (joint.job**2).sum(axis=1)
    of_stage = (joint.root**2).sum(axis=1)
    uniform = sum(
        0.5 * ndtr(latent / np.sqrt(of_job + of_stage * (1.0 + sign * joint.unequal)))
        for sign in (1.0, -1.0)
    )
    drawn: F8 = np.minimum(uniform, np.nextafter(1.0, 0.0))
    return drawn


def _stream(seed: int, purpose: str) -> np.random.Generator:
    return stream(seed, "synth", "alibaba2018", "joint", purpose)
