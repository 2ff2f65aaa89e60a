"""Latent numbers along DAGs: the kernel against NumPy, stage by stage."""

from __future__ import annotations

import numpy as np

from sim.dags import uniform_dags
from sim.synth.fitted.kernels.chance import copy_from_child, follow


def test_kernels_equal_numpy():
    graphs = uniform_dags([1, 4, 9, 30], 3)
    random = np.random.default_rng(0)
    n = 3
    root, pull, noise = random.normal(size=(3, n, n))
    e = random.normal(size=(graphs.n_stages, n))
    uniform = random.random((graphs.n_stages, n))
    chance = np.array([0.0, 0.4, 1.0])
    latent, values = e.copy(), e.copy()
    arrays = graphs.order, graphs.edge0, graphs.edge_child
    follow(*arrays, root, pull, noise, latent)
    copy_from_child(*arrays, uniform, chance, values)
    for s in graphs.order[::-1].tolist():
        children = graphs.edge_child[graphs.edge0[s] : graphs.edge0[s + 1]]
        if len(children):
            np.testing.assert_allclose(latent[s], pull @ latent[children[0]] + noise @ e[s])
            is_copied = uniform[s] < chance
            np.testing.assert_array_equal(values[s], np.where(is_copied, values[children[0]], e[s]))
        else:
            np.testing.assert_allclose(latent[s], root @ e[s])
            np.testing.assert_array_equal(values[s], e[s])
