"""Slurm's fair share: decayed usage of accounts and users, Fair Tree and the classic factor.

Sources: Slurm's pages on the multifactor plugin (https://slurm.schedmd.com/priority_multifactor.html),
Fair Tree (https://slurm.schedmd.com/fair_tree.html) and the classic algorithm
(https://slurm.schedmd.com/classic_fair_share.html).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.base.maths import power

ROOT = "root"
"""The account above all others; it has one user of this name, with one share."""


class Usage:
    """CPU seconds of each association, halved about every half-life, as Slurm keeps them.

    Every period the sum decays and what running jobs have used since the last time is added, itself
    decayed by its length; what a job has used until its end is added at once.

    Attributes
    ----------
    cpu_s : (A,) float64
        Usage of each association; overwritten.
    at_s : float
        Time of the last decay, s.
    """

    def __init__(self, n: int, half_life_s: float) -> None:
        self.cpu_s = np.zeros(n)
        self.at_s = 0.0
        # 0.693 for ln 2, and the first two terms of the exponential, as in the plugin
        self.decay = 1 - 0.693 / half_life_s if half_life_s else 1.0
        self._last = (0.0, 1.0)  # a period, s, and its factor

    def decay_to(self, now_s: float, association: I4, cpus: F8, start_s: F8) -> F8:
        """Decay the usage and add that of running jobs; return what each added, (n,).

        Parameters
        ----------
        now_s : float
            Time of the decay, s; at least `at_s`.
        association, cpus, start_s : (n,) int32, float64, float64
            The running jobs: association, allocated CPUs and start, s.
        """
        self.cpu_s *= self._factor(now_s - self.at_s)
        added = self.add_run(association, cpus, now_s - np.maximum(start_s, self.at_s))
        self.at_s = now_s
        return added

    def decay_often(self, n: int, period_s: float, association: I4, cpus: F8) -> None:
        """Decay `n` times, every `period_s` from `at_s` on, while the same jobs run."""
        factor = self._factor(period_s)
        decay = power(factor, float(n))
        periods = (1 - decay) / (1 - factor) if factor < 1 else n  # the sum of factor^i, i < n
        self.cpu_s = self.cpu_s * decay
        self.add(association, cpus * (period_s * factor * periods))
        self.at_s += n * period_s

    def _factor(self, for_s: float) -> float:
        """Return what is left of usage after `for_s` seconds; most periods are as long."""
        if for_s != self._last[0]:
            self._last = (for_s, power(self.decay, for_s))
        return self._last[1]

    def add_run(self, association: I4, cpus: F8, for_s: F8) -> F8:
        """Add, and return, what jobs used in their last `for_s` seconds, (n,); 0 if negative."""
        if not len(for_s):
            return for_s
        for_s = np.maximum(for_s, 0.0)
        used: F8 = for_s * power(self.decay, for_s) * cpus
        self.add(association, used)
        return used

    def add(self, association: I4, cpu_s: F8) -> None:
        """Add CPU seconds to associations, (n,)."""
        self.cpu_s += np.bincount(association, cpu_s, len(self.cpu_s))


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
        self._levels = [
            np.unique(self.path[self.depth > d, d]) for d in reversed(range(self.path.shape[1]))
        ]
        self._columns = np.arange(self.path.shape[1])
        self._first = len(nodes)  # row of the first association among the nodes
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

    def usage(self, cpu_s: F8) -> F8:
        """Return the usage of each node: its own associations' and those below, CPU seconds."""
        total = np.zeros(len(self.parent))
        total[self._first :] = cpu_s
        for level in self._levels:
            total += np.bincount(self.parent[level], total[level], len(total))
        return total

    def fair_tree(self, cpu_s: F8) -> F8:
        """Return the fair-share factor of each association, (A,): its rank over their number.

        The level fair share of a node is its share of its level over its share of their usage.
        Siblings are ranked by it, then the children of each; siblings of equal level fair share
        are ranked as one, users first, and a user equals the first user of an equal account.
        """
        usage = self.usage(cpu_s)
        above = usage[self.parent]
        above[0] = 0.0
        part = np.divide(usage, above, out=np.zeros(len(usage)), where=above > 0)
        level = np.where(self.share > 0, np.inf, 0.0)
        np.divide(self.share, part, out=level, where=(self.share > 0) & (part > 0))
        keys = np.where(self.path >= 0, level[self.path], np.inf)
        order = np.lexsort((self.depth, *(-keys.T[::-1])))
        first, then = order[:-1], order[1:]
        beyond = self._columns >= self.depth[first, None]
        tied = ((keys[first] == keys[then]) | beyond).all(axis=1)
        place = np.arange(len(order))
        place[1:][tied] = 0
        rank = np.empty(len(order))
        rank[order] = len(order) - np.maximum.accumulate(place)
        return rank / len(order)

    def effective_above(self, cpu_s: F8) -> F8:
        """Return the effective usage of each association's account, (A,); the root's is 1.

        Classic fair share: that of a node is its part of all usage, mixed with its parent's
        effective usage by its share of its level; below the root it is not mixed.
        """
        usage = self.usage(cpu_s)
        part = usage / usage[0] if usage[0] > 0 else np.zeros(len(usage))
        above = np.ones(len(self.path))
        for d in range(self.path.shape[1] - 1):
            node = self.path[:, d]
            below = part[node] + (above - part[node]) * self.share[node] if d else part[node]
            above = np.where(self.depth > d + 1, below, above)
        return above

    def classic(self, associations: I4 | I8, part: F8, above: F8) -> F8:
        """Return the classic fair-share factor of associations, 2^(-usage over share), (n,).

        Parameters
        ----------
        associations : (n,) int
            Some associations.
        part : (n,) float64
            Their parts of all usage.
        above : (n,) float64
            Effective usage of their accounts.
        """
        level = self.share[self._first + associations]
        is_top = self.depth[associations] == 1
        effective = np.where(is_top, part, part + (above - part) * level)
        share = self.root_share[associations]
        ratio = np.divide(effective, share, out=np.zeros(len(share)), where=share > 0)
        return np.where(share > 0, power(2.0, -ratio), 0.0)
