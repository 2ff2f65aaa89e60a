"""Slurm's tree of accounts and users, whose shares fair share is about.

Sources: Slurm's pages on the multifactor plugin (https://slurm.schedmd.com/priority_multifactor.html),
Fair Tree (https://slurm.schedmd.com/fair_tree.html) and the classic algorithm
(https://slurm.schedmd.com/classic_fair_share.html).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.base.errors import InputError

ROOT = "root"
"""The account above all others; it has one user of this name, with one share."""


class Shares:
    """Tree of accounts whose leaves are associations, each a user in an account.

    Parameters
    ----------
    pairs : iterable of (str, str)
        Account and user of each association, without those that `shares` names.
    shares : mapping of str to int
        Shares by account, or by ``account/user``; 1 for others.
    parents : mapping of str to str
        Parent of an account; the root for others.

    Attributes
    ----------
    associations : tuple of (str, str)
        Account and user, (A,); the user `ROOT` of the account `ROOT` is the first.

    Raises
    ------
    InputError
        If an account is its own ancestor, or shares are negative.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        shares: Mapping[str, int],
        parents: Mapping[str, str],
    ) -> None:
        named = [tuple(key.split("/", 1)) for key in shares if "/" in key]
        leaves = dict.fromkeys([(ROOT, ROOT), *pairs, *named])  # ordered, and each once
        self.associations: tuple[tuple[str, str], ...] = tuple((a, u) for a, u in leaves)
        accounts = dict.fromkeys([account for account, _ in leaves])
        accounts |= dict.fromkeys(key for key in shares if "/" not in key)
        accounts |= dict.fromkeys([*parents, *parents.values()])
        nodes = {name: i for i, name in enumerate(dict.fromkeys([ROOT, *accounts]))}
        n = len(nodes)
        above = [nodes[parents.get(name, ROOT)] for name in nodes]
        above[0] = -1
        above += [nodes[account] for account, _ in self.associations]
        keys = [*nodes, *(f"{account}/{user}" for account, user in self.associations)]
        own = np.array([shares.get(key, 1) for key in keys], dtype=np.float64)
        for key, value in zip(keys, own, strict=True):
            if value < 0:
                raise InputError(f"shares of {key!r} must be 0 or more, not {value:g}")
        self.parent: I8 = np.array(above)
        siblings = np.bincount(self.parent[1:], own[1:], len(keys))[self.parent]
        self.share: F8 = np.where(siblings > 0, own / np.maximum(siblings, 1), 0.0)  # of its level
        self.path = self._paths(n, list(nodes))
        self.depth: I8 = (self.path >= 0).sum(axis=1)
        levels = [
            np.unique(self.path[self.depth > d, d]) for d in reversed(range(self.path.shape[1]))
        ]
        self.nodes: I8 = np.concatenate(levels)  # the deepest first
        parts = np.where(self.path >= 0, self.share[self.path], 1.0)
        self.root_share: F8 = np.multiply.accumulate(parts, axis=1)[:, -1]  # of all shares, (A,)

    def _paths(self, n_accounts: int, names: list[str]) -> I8:
        """Return the nodes from below the root to each association, (A, D); -1 after its own."""
        paths = []
        for leaf in range(n_accounts, len(self.parent)):
            path = [leaf]
            while self.parent[path[-1]] > 0:
                path.append(int(self.parent[path[-1]]))
                if len(path) > n_accounts + 1:
                    raise InputError(f"account {names[path[-1]]!r} is its own ancestor: parents")
            paths.append(path[::-1])
        deepest = max(map(len, paths))
        return np.array([path + [-1] * (deepest - len(path)) for path in paths])

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The tree, for the kernels (`policies.backfill.kernels.priority_record`)."""
        return {
            "w_share": self.share,
            "w_parent": self.parent,
            "w_level_node": self.nodes,
            "w_path": self.path,
            "w_depth": self.depth,
            "w_root_share": self.root_share,
        }
