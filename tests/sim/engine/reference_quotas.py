"""Quotas of the naive simulator: the tree of queues, summed anew whenever it is read.

What is available follows Kueue's recursion (v0.19, ``resource_node.go``) word for word; the kernel
walks up the tree instead.
"""

from __future__ import annotations

import math
from functools import cached_property
from types import SimpleNamespace

INF = math.inf


class Quotas:
    """Mix-in of `tests.sim.engine.reference`."""

    def _init_quotas(self, cluster, quantum):
        self.quota_nodes = {}
        if cluster.queue_mode != "quota":
            return
        limited = {r for name in cluster.quotas for r in self._limited_by(cluster, name)}
        for name, quota in cluster.quotas.items():
            table = {key: getattr(quota, key) for key in ("nominal", "borrow", "lend")}
            nominal, borrow, lend = (
                [self._amount(table[key], r, cluster, quantum) for r in range(len(self.total))]
                for key in table
            )
            self.quota_nodes[name] = SimpleNamespace(
                name=name,
                parent=quota.parent,
                nominal=[amount or 0 for amount in nominal],
                borrow=[INF if amount is None else amount for amount in borrow],
                lend=[INF if amount is None else amount for amount in lend],
                weight=quota.weight,
                children=[n for n, other in cluster.quotas.items() if other.parent == name],
            )
        self.limited = [r for r, name in enumerate(cluster.resources) if name in limited]
        queues = list(self.c.queue_names)
        depth = {name: len(self._path(name)) for name in self.quota_nodes}
        cohorts = sorted((n for n in self.quota_nodes if n not in queues), key=lambda n: -depth[n])
        self.node_row = {name: i for i, name in enumerate([*queues, *cohorts])}
        self.org = self.c.job_queue.tolist()
        self.org_weight = [self.quota_nodes[name].weight for name in queues]
        self.cap = [[INF] * len(self.total) for _ in queues]

    def _limited_by(self, cluster, name):
        quota = cluster.quotas[name]
        for table in (quota.nominal, quota.borrow, quota.lend):
            yield from table if isinstance(table, dict) else cluster.resources

    def _amount(self, table, r, cluster, quantum):
        if r == self.whole:
            return None  # parts of machines
        value = table.get(cluster.resources[r]) if isinstance(table, dict) else table
        if isinstance(value, str):
            share = float(value[:-1]) / 100 * self.total[r]
            return math.floor(share * (1 + 1e-12) + 1e-9)
        return None if value is None else math.floor(value / quantum[r] * (1 + 1e-12) + 1e-9)

    def _path(self, name):
        """Return the names from the root to a node."""
        above = self.quota_nodes[name].parent
        return ([*self._path(above), name]) if above else [name]

    def _quota(self, name, r):
        """Return what a node has, with what its children lend it."""
        node = self.quota_nodes[name]
        return node.nominal[r] + sum(
            self._quota(child, r) - self._local(child, r) for child in node.children
        )

    def _local(self, name, r):
        return max(0, self._quota(name, r) - self.quota_nodes[name].lend[r])

    def _taken(self, name, r, use):
        """Return the use that counts against the quota of a node: of `use`, by organisation."""
        node = self.quota_nodes[name]
        own = use[self.node_row[name]][r] if self.node_row[name] < len(use) else 0
        return own + sum(
            max(0, self._taken(child, r, use) - self._local(child, r)) for child in node.children
        )

    def _available(self, name, r, use):
        node, taken = self.quota_nodes[name], self._taken(name, r, use)
        if not node.parent:
            return self._quota(name, r) - taken
        from_parent = self._available(node.parent, r, use)
        stored = self._quota(name, r) - self._local(name, r)
        used_there = max(0, taken - self._local(name, r))
        from_parent = min(from_parent, stored - used_there + node.borrow[r])
        return max(0, self._local(name, r) - taken) + from_parent

    def _use_by_org(self):
        use = [[0] * len(self.total) for _ in self.org_weight]
        for j in range(self.n_jobs):
            for r in range(len(self.total)):
                use[self.org[j]][r] += self.used[j][r]
        return use

    def _within_quota(self, org, request, use=None):
        """Tell whether the queue `org` may use `request` more than `use`, that of now if None."""
        if not self.quota_nodes:
            return True
        use, name = use or self._use_by_org(), self.c.queue_names[org]
        return all(
            request[r] <= self._available(name, r, use)
            for r in self.limited
            if r in self.deciding and request[r] > 0
        )

    def _may_borrow(self, name, r):
        return bool(self.quota_nodes[name].parent) and self.quota_nodes[name].borrow[r] > 0

    @cached_property
    def queues_are_hard(self):
        """True if queues have shares of their own, and the use of others does not count."""
        if not self.quota_nodes:
            return self.world.cluster.queue_mode == "hard"
        return bool(self.limited) and not any(
            self._may_borrow(name, r) for name in self.quota_nodes for r in self.limited
        )

    def _head_request(self, queue):
        """Return what the first waiting job of a queue asks for: a task, or all slots of a gang."""
        head = min((g for g in self._waiting() if self._queue(g) == queue), key=self._rank)
        j = int(self.c.stage_job[head])
        if self._is_waiting_gang(j):
            return head, self._total(j)
        return head, [int(amount) for amount in self.demand[head]]

    def _borrowing(self, queue):
        """Return for each node, from the root down, whether the first job would borrow there."""
        _, request = self._head_request(queue)
        limited = [r for r in self.limited if r in self.deciding]
        path, use = self._path(self.c.queue_names[queue[0]]), self._use_by_org()
        if not any(request[r] for r in limited):
            return [any(self._may_borrow(name, r) for r in self.limited) for name in path]
        flags = []
        for name in reversed(path):
            flags.insert(
                0,
                any(
                    request[r] > 0
                    and self._may_borrow(name, r)
                    and self._taken(name, r, use) + request[r] > self._quota(name, r)
                    for r in limited
                ),
            )
            passed = [max(0, self._local(name, r) - self._taken(name, r, use)) for r in limited]
            request = list(request)
            for r, stays in zip(limited, passed, strict=True):
                request[r] = max(0, request[r] - stays)
        return flags

    def _tree_key(self, queue):
        """Return the order of a queue: within quotas first, then by share, or by its first job."""
        flags = self._borrowing(queue)
        if not self.plan.by_share:
            return (self._height(flags), self._rank(self._head_request(queue)[0]))
        key, use = [], self._use_by_org()
        for name, flag in zip(self._path(self.c.queue_names[queue[0]]), flags, strict=True):
            share = self._dominant_share(self._use_below(name, use)) / self.quota_nodes[name].weight
            key.append((flag, share, self.node_row[name]))
        return tuple(key)

    def _height(self, flags):
        """Return by how many nodes up from the queue its first job borrows."""
        return len(flags) - flags.index(True) if True in flags else 0

    def _use_below(self, name, use):
        node, row = self.quota_nodes[name], self.node_row[name]
        total = list(use[row]) if row < len(use) else [0] * len(self.total)
        for child in node.children:
            total = [t + u for t, u in zip(total, self._use_below(child, use), strict=True)]
        return total

    def _stage_key(self, g):
        """Return the order of a waiting stage among all."""
        queue = self._queue(g)
        if self.quota_nodes and not self.plan.by_share:
            tier = self.plan.queues.tier[queue[1]]
            return (tier, self._height(self._borrowing(queue)), self._rank(g))
        return (self._queue_key(queue), self._rank(g))
