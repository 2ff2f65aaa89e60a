"""Quotas of the naive simulator: the tree of queues, summed anew whenever it is read.

What is available follows Kueue's recursion (v0.19, ``resource_node.go``) word for word; the kernel
walks up the tree instead. Amounts are by column: a resource, or a resource and a flavor. A *try*
has the machines of the flavors that a job would take, and the column of each resource on them.
"""

from __future__ import annotations

import math
from functools import cache, cached_property
from types import SimpleNamespace

from sim.engine.plan import Fit

INF = math.inf


class Quotas:
    """Mix-in of `tests.sim.engine.reference`."""

    def _init_quotas(self, cluster, quantum):
        self.quota_nodes = {}
        # what use does not change
        self._quota, self._local = cache(self._quota), cache(self._local)
        self._tries_for = cache(self._tries_for)
        self._init_columns(cluster)
        self._init_strategies(cluster)
        if cluster.queue_mode != "quota":
            return
        limited = {r for name in cluster.quotas for r in self._limited_by(cluster, name)}
        for name, quota in cluster.quotas.items():
            table = {key: getattr(quota, key) for key in ("nominal", "borrow", "lend")}
            nominal, borrow, lend = (
                [self._amount(table[key], k, cluster, quantum) for k in range(len(self.columns))]
                for key in table
            )
            is_queue = all(other.parent != name for other in cluster.quotas.values())
            for k, (r, flavor) in enumerate(self.columns):
                own = self._named_by(cluster, name, r)
                if is_queue and own and flavor not in own:
                    nominal[k] = borrow[k] = 0
            self.quota_nodes[name] = SimpleNamespace(
                name=name,
                parent=quota.parent,
                nominal=[amount or 0 for amount in nominal],
                borrow=[INF if amount is None else amount for amount in borrow],
                lend=[INF if amount is None else amount for amount in lend],
                weight=quota.weight,
                by_least=quota.flavor_choice == "least_borrowing",
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
        for g, row in enumerate(self.allowed_on):
            name = queues[self.org[int(self.c.stage_job[g])]]
            taken = [r for r in self.by_flavor if self.demand[g][r] > 0]
            for m in range(len(row)):
                row[m] &= all(self.flavor_on[m][r] in self._own(name, r) for r in taken)

    def _init_columns(self, cluster):
        """Set the flavor of each resource on each machine, and the columns of amounts."""
        self.quotas, n_resources = cluster.quotas, len(self.total)
        self.flavors = [[] for _ in range(n_resources)]
        for r in range(len(cluster.resources)):
            for name in cluster.quotas:
                new = self._named_by(cluster, name, r)
                self.flavors[r] += [f for f in new if f not in self.flavors[r]]
        self.by_flavor = [r for r in range(n_resources) if self.flavors[r]]
        self.flavor_on = [
            [
                next((f for f in self.flavors[r] if name in f.split("|")), "*")
                if self.flavors[r]
                else None
                for r in range(n_resources)
            ]
            for name in self.class_of_machine
        ]
        self.columns = [
            (r, flavor) for r in range(n_resources) for flavor in [*self.flavors[r], "*", None]
            if any(row[r] == flavor for row in self.flavor_on) or flavor in self.flavors[r]
        ]  # fmt: skip
        self.column_on = [
            [self.columns.index((r, flavor)) for r, flavor in enumerate(row)]
            for row in self.flavor_on
        ]
        self.used_in = [[0] * len(self.columns) for _ in range(self.n_jobs)]
        self.open = None

    def _init_strategies(self, cluster):
        """Set the fit of all queues, and the queues whose jobs pass others if some do not."""
        self.fit, self.skipping = self.plan.fit, set()
        own = [
            cluster.quotas[q].strategy if q in cluster.quotas else "" for q in self.c.queue_names
        ]
        if not any(quota.strategy for quota in cluster.quotas.values()):
            return
        skips = [text == "skip" or (not text and self.fit == Fit.SKIP) for text in own]
        self.fit = Fit.SKIP if all(skips) else Fit.STRICT
        self.skipping = set() if all(skips) else {o for o, skip in enumerate(skips) if skip}

    def _named_by(self, cluster, name, r):
        """List the flavors of a resource that a node names."""
        if r == self.whole or r >= len(cluster.resources):
            return []
        quota, named = cluster.quotas[name], []
        for table in (quota.nominal, quota.borrow, quota.lend):
            amounts = table.get(cluster.resources[r]) if isinstance(table, dict) else None
            named += [f for f in amounts if f not in named] if isinstance(amounts, dict) else []
        return named

    def _own(self, name, r):
        """List the flavors of a resource that a queue may use, in its order."""
        named = self._named_by(self.world.cluster, name, r)
        return named or [flavor for other, flavor in self.columns if other == r]

    # ---- flavors that a job tries

    def _tries(self, org, request):
        """List the tries for a request: machines of the same flavors of what it takes, in order."""
        return list(self._tries_for(org, tuple(r for r in self.by_flavor if request[r] > 0)))

    def _tries_for(self, org, taken):
        name, groups = self.c.queue_names[org] if taken else "", {}
        for m, flavors in enumerate(self.flavor_on):
            key = tuple(flavors[r] for r in taken)
            if all(flavors[r] in self._own(name, r) for r in taken):
                groups.setdefault(key, []).append(m)
        order = sorted(
            groups,
            key=lambda key: [
                self._own(name, r).index(flavor) for r, flavor in zip(taken, key, strict=True)
            ],
        )
        return [
            SimpleNamespace(machines=groups[key], column=self.column_on[groups[key][0]])
            for key in order
        ]

    def _within(self, attempt, ask):
        """Return what `ask` says while only the machines of a try are open."""
        before, self.open = self.open, attempt
        answer = ask()
        self.open = before
        return answer

    def _in_order(self, j, request, is_allowed=True):
        """List the tries of job j, by its queue's choice; those that caps and quotas allow now."""
        org = self.org[j]
        tries = self._tries(org, request)
        if self.quota_nodes and self.quota_nodes[self.c.queue_names[org]].by_least:
            tries.sort(key=lambda attempt: self._height(self._flags(org, request, attempt)))
        if not is_allowed:
            return tries
        return [
            attempt
            for attempt in tries
            if self._within(attempt, lambda: self._within_cap(j, request, 1))
        ]

    def _is_open_to_flavor(self, m):
        return self.open is None or m in self.open.machines

    def _with_machine(self, j, request, m):
        """Return the try of job j on machine m; None without flavors."""
        tries = [attempt for attempt in self._tries(self.org[j], request) if m in attempt.machines]
        return tries[0] if self.by_flavor else None

    def _within_cap_on(self, j, demand, m):
        """Tell whether caps and quotas allow a demand on machine m."""
        tries = [attempt for attempt in self._tries(self.org[j], demand) if m in attempt.machines]
        return any(
            self._within(attempt, lambda: self._within_cap(j, demand, 1)) for attempt in tries
        )

    def _limited_by(self, cluster, name):
        quota = cluster.quotas[name]
        for table in (quota.nominal, quota.borrow, quota.lend):
            yield from table if isinstance(table, dict) else cluster.resources

    def _amount(self, table, k, cluster, quantum):
        r, flavor = self.columns[k]
        if r == self.whole:
            return None  # parts of machines
        value = table.get(cluster.resources[r]) if isinstance(table, dict) else table
        if isinstance(value, dict):
            value = value.get(flavor)
        if isinstance(value, str):
            machines = [m for m, row in enumerate(self.column_on) if row[r] == k]
            share = float(value[:-1]) / 100 * sum(self.capacity[m][r] for m in machines)
            return math.floor(share * (1 + 1e-12) + 1e-9)
        return None if value is None else math.floor(value / quantum[r] * (1 + 1e-12) + 1e-9)

    def _path(self, name):
        """Return the names from the root to a node."""
        above = self.quota_nodes[name].parent
        return ([*self._path(above), name]) if above else [name]

    def _quota(self, name, k):
        """Return what a node has, with what its children lend it."""
        node = self.quota_nodes[name]
        return node.nominal[k] + sum(
            self._quota(child, k) - self._local(child, k) for child in node.children
        )

    def _local(self, name, k):
        return max(0, self._quota(name, k) - self.quota_nodes[name].lend[k])

    def _taken(self, name, k, use):
        """Return the use that counts against the quota of a node: of `use`, by organisation."""
        node = self.quota_nodes[name]
        own = use[self.node_row[name]][k] if self.node_row[name] < len(use) else 0
        return own + sum(
            max(0, self._taken(child, k, use) - self._local(child, k)) for child in node.children
        )

    def _available(self, name, k, use):
        node, taken = self.quota_nodes[name], self._taken(name, k, use)
        if not node.parent:
            return self._quota(name, k) - taken
        from_parent = self._available(node.parent, k, use)
        stored = self._quota(name, k) - self._local(name, k)
        used_there = max(0, taken - self._local(name, k))
        from_parent = min(from_parent, stored - used_there + node.borrow[k])
        return max(0, self._local(name, k) - taken) + from_parent

    def _use_by_org(self):
        """Return the use of each organisation, by column."""
        use = [[0] * len(self.columns) for _ in self.org_weight]
        for j in range(self.n_jobs):
            for k in range(len(self.columns)):
                use[self.org[j]][k] += self.used_in[j][k]
        return use

    def _within_quota(self, org, request, use=None):
        """Tell whether the queue `org` may use `request` more than `use`, that of now if None.

        On the machines of the try that is open, or of any.
        """
        if not self.quota_nodes:
            return True
        if self.open is None:
            return any(
                self._within(attempt, lambda: self._within_quota(org, request, use))
                for attempt in self._tries(org, request)
            )
        use, name = use or self._use_by_org(), self.c.queue_names[org]
        return all(
            request[r] <= self._available(name, self.open.column[r], use)
            for r in self.limited
            if r in self.deciding and request[r] > 0
        )

    def _may_borrow(self, name, k):
        return bool(self.quota_nodes[name].parent) and self.quota_nodes[name].borrow[k] > 0

    def _columns_of(self, resources):
        return [k for k, (r, _) in enumerate(self.columns) if r in resources]

    @cached_property
    def queues_are_hard(self):
        """True if queues have shares of their own, and the use of others does not count."""
        if not self.quota_nodes:
            return self.world.cluster.queue_mode == "hard"
        return bool(self.limited) and not any(
            self._may_borrow(name, k)
            for name in self.quota_nodes
            for k in self._columns_of(self.limited)
        )

    def _head_request(self, queue):
        """Return what the first waiting job of a queue asks for: a task, or all slots of a gang."""
        head = min((g for g in self._waiting() if self._queue(g) == queue), key=self._rank)
        j = int(self.c.stage_job[head])
        if self._is_waiting_gang(j):
            return head, self._total(j)
        return head, [int(amount) for amount in self.demand[head]]

    def _borrowing(self, queue):
        """Return for each node, from the root down, whether the first job would borrow there.

        In the flavor that it would take by its caps and quotas; if these allow none, in its first.
        """
        head, request = self._head_request(queue)
        j = int(self.c.stage_job[head])
        tries = self._in_order(j, request) or self._in_order(j, request, is_allowed=False)
        return self._flags(queue[0], request, tries[0])

    def _flags(self, org, request, attempt):
        """Return for each node, from the root down, whether a request borrows there, in a try."""
        limited = [r for r in self.limited if r in self.deciding]
        path, use = self._path(self.c.queue_names[org]), self._use_by_org()
        if not any(request[r] for r in limited):
            every = self._columns_of(self.limited)
            return [any(self._may_borrow(name, k) for k in every) for name in path]
        flags = []
        for name in reversed(path):
            flags.insert(
                0,
                any(
                    request[r] > 0
                    and self._may_borrow(name, attempt.column[r])
                    and self._taken(name, attempt.column[r], use) + request[r]
                    > self._quota(name, attempt.column[r])
                    for r in limited
                ),
            )
            passed = [
                max(
                    0,
                    self._local(name, attempt.column[r])
                    - self._taken(name, attempt.column[r], use),
                )
                for r in limited
            ]
            request = list(request)
            for r, stays in zip(limited, passed, strict=True):
                request[r] = max(0, request[r] - stays)
        return flags

    def _tree_key(self, queue):
        """Return the order of a queue: within quotas first, then by share, or by its first job."""
        flags = self._borrowing(queue)
        if not self.plan.by_share:
            return (self._height(flags), self._rank(self._head_request(queue)[0]))
        key = []
        for name, flag in zip(self._path(self.c.queue_names[queue[0]]), flags, strict=True):
            share = self._dominant_share(self._use_below(name)) / self.quota_nodes[name].weight
            key.append((flag, share, self.node_row[name]))
        return tuple(key)

    def _height(self, flags):
        """Return by how many nodes up from the queue its first job borrows."""
        return len(flags) - flags.index(True) if True in flags else 0

    def _use_below(self, name):
        """Return the use of all queues below a node, by resource."""
        node, row = self.quota_nodes[name], self.node_row[name]
        own = [j for j in range(self.n_jobs) if self.org[j] == row]
        total = [sum(self.used[j][r] for j in own) for r in range(len(self.total))]
        for child in node.children:
            total = [t + u for t, u in zip(total, self._use_below(child), strict=True)]
        return total

    def _stage_key(self, g):
        """Return the order of a waiting stage among all."""
        return (self._order_of_queue(self._queue(g)), self._rank(g))

    def _order_of_queue(self, queue):
        """Return what comes before the rank of the stages of a queue."""
        if self.quota_nodes and not self.plan.by_share:
            return (self.plan.queues.tier[queue[1]], self._height(self._borrowing(queue)))
        return self._queue_key(queue)
