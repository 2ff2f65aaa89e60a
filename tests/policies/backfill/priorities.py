"""Slurm's multifactor priority in plain Python, second by second, and a queue in its order.

A job is a dict: submit, run, width, account, user, partition, qos, limit. Every `period` seconds
from 0 on usage decays and each waiting job gets a new priority; a job gets its first as it comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Site:
    """Settings of a site, and its state."""

    slots: int
    weights: dict  # age, size, fair, partition, qos
    max_age: float
    half_life: float
    period: float
    shares: dict = field(default_factory=dict)
    parents: dict = field(default_factory=dict)
    partitions: dict = field(default_factory=dict)
    qos: dict = field(default_factory=dict)
    tiers: dict = field(default_factory=dict)
    fair_tree: bool = True
    favor_small: bool = False

    def tree(self, jobs):
        """Children of each node of the tree; a user's node is a pair."""
        users = dict.fromkeys(
            [("root", "root"), *((job["account"], job["user"]) for job in jobs)]
            + [tuple(key.split("/")) for key in self.shares if "/" in key]
        )
        accounts = {a for a, _ in users} | {k for k in self.shares if "/" not in k}
        accounts |= {*self.parents, *self.parents.values()}
        children = {account: [] for account in {"root"} | accounts}
        for account in sorted(accounts - {"root"}):
            children[self.parents.get(account, "root")].append(account)
        for user in users:
            children[user[0]].append(user)
        return children

    def shares_of(self, node):
        """Return shares of an account or of a user's pair."""
        return self.shares.get("/".join(node) if isinstance(node, tuple) else node, 1)


def usage_of(node, children, used):
    """Return usage of a node of the tree."""
    if isinstance(node, tuple):
        return used.get(node, 0.0)
    return sum(usage_of(child, children, used) for child in children[node])


def fair_tree(site, children, used):
    """Rank users depth first by level fair share; tied accounts are merged (Fair Tree's page)."""
    n_users = sum(isinstance(node, tuple) for below in children.values() for node in below)
    factor = {}
    state = {"left": n_users, "rank": n_users}

    def level(node, parent):
        below = sum(site.shares_of(child) for child in children[parent])
        share = site.shares_of(node) / below if below else 0.0
        total = usage_of(parent, children, used)
        part = usage_of(node, children, used) / total if total else 0.0
        return 0.0 if share == 0 else math.inf if part == 0 else share / part

    def rank(accounts, tied):
        nodes = [(node, level(node, parent)) for parent in accounts for node in children[parent]]
        values = sorted({value for _, value in nodes}, reverse=True)
        for value in values:
            users = [node for node, v in nodes if v == value and isinstance(node, tuple)]
            groups = [node for node, v in nodes if v == value and not isinstance(node, tuple)]
            for user in users:
                if not tied:
                    state["rank"] = state["left"]
                factor[user] = state["rank"] / n_users
                state["left"] -= 1
                tied = True
            if groups:
                rank(groups, tied)
            tied = False

    rank(["root"], False)
    return factor


def effective(site, children, used):
    """Return effective usage and normalised shares of each account."""
    total = usage_of("root", children, used)
    accounts = {"root": (1.0, 1.0)}

    def down(parent):
        for child in children[parent]:
            if not isinstance(child, tuple):
                accounts[child] = mixed(
                    site, children, child, parent, accounts[parent], used, total
                )
                down(child)

    down("root")
    return accounts


def mixed(site, children, node, parent, above, used, total):
    """Return effective usage and normalised shares of a node, from its parent's."""
    level = sum(site.shares_of(child) for child in children[parent])
    part = site.shares_of(node) / level if level else 0.0
    own = usage_of(node, children, used) / total if total else 0.0
    usage = own if parent == "root" else own + (above[0] - own) * part
    return usage, above[1] * part


def classic(site, children, used, above, pair):
    """Return 2^(-effective usage over normalised shares) of a user, who may be ``root``."""
    total = usage_of("root", children, used)
    usage, share = mixed(site, children, pair, pair[0], above[pair[0]], used, total)
    return 2 ** (-usage / share) if share else 0.0


def weighted(site, job, now, factor):
    """Return the weighted factors of a job."""
    size = (job["width"] / site.slots + 1 / site.slots) / 2
    largest = max([1, *site.partitions.values()])
    return {
        "age": site.weights["age"] * min(max(now - job["submit"], 0.0) / site.max_age, 1.0),
        "size": site.weights["size"] * (1 - size if site.favor_small else size),
        "fair": site.weights["fair"] * factor[job["account"], job["user"]],
        "partition": site.weights["partition"]
        * (site.partitions.get(job["partition"], 1) / largest),
        "qos": site.weights["qos"] * site.qos.get(job["qos"], 0) / max([1, *site.qos.values()]),
    }


def starts(site, jobs, easy=False):
    """Return starts of jobs, in strict order of priority or with EASY backfilling."""
    children = site.tree(jobs)
    decay = 1 - 0.693 / site.half_life if site.half_life else 1.0
    used, start, priority = {}, {}, {}
    last, done, arrived, n_tick = 0.0, set(), 0, 0
    factor, above = {}, effective(site, children, used)
    if site.fair_tree:
        factor = fair_tree(site, children, used)

    def key(j):
        return (-site.tiers.get(jobs[j]["partition"], 1), -priority[j], j)

    def evaluate(j, now):
        pair = jobs[j]["account"], jobs[j]["user"]
        if pair not in factor:
            factor[pair] = classic(site, children, used, above, pair)
        priority[j] = math.floor(max(1.0, sum(weighted(site, jobs[j], now, factor).values())))

    def add(j, now):
        for_s = max(now - max(start[j], last), 0.0)
        pair = jobs[j]["account"], jobs[j]["user"]
        used[pair] = used.get(pair, 0.0) + for_s * decay**for_s * jobs[j]["width"]

    while len(done) < len(jobs):
        running = [j for j in start if j not in done]
        times = [(n_tick + 1) * site.period, *(start[j] + jobs[j]["run"] for j in running)]
        if arrived < len(jobs):
            times.append(jobs[arrived]["submit"])
        now = min(times)
        ending = [j for j in running if start[j] + jobs[j]["run"] <= now]
        if (n_tick + 1) * site.period <= now:
            n_tick += 1
            above = effective(site, children, used)
            for pair in used:
                used[pair] *= decay ** (now - last)
            if site.fair_tree:
                for j in running:
                    add(j, now)
                factor = fair_tree(site, children, used)
                for j in range(arrived):
                    if j not in start:
                        evaluate(j, now)
            else:
                factor = {}
                for j in range(arrived):  # usage and priorities in one pass
                    if j in running:
                        add(j, now)
                    elif j not in start:
                        evaluate(j, now)
            last = now
        for j in ending:
            add(j, now)
            done.add(j)
        while arrived < len(jobs) and jobs[arrived]["submit"] <= now:
            evaluate(arrived, last)
            arrived += 1
        free = site.slots - sum(jobs[j]["width"] for j in start if j not in done)
        queue = sorted((j for j in range(arrived) if j not in start), key=key)
        while queue and jobs[queue[0]]["width"] <= free:
            start[queue[0]] = now
            free -= jobs[queue.pop(0)]["width"]
        if easy and queue:
            _backfill(jobs, start, done, queue, free, now)
    return [start[j] for j in range(len(jobs))]


def _backfill(jobs, start, done, queue, free, now):
    """Start others that fit and do not delay the first (Mu'alem and Feitelson, TPDS 2001)."""
    ends = sorted(
        (max(start[j] + jobs[j]["limit"], now), jobs[j]["width"]) for j in start if j not in done
    )
    room = free
    for i, (end, width) in enumerate(ends):
        room += width
        if room >= jobs[queue[0]]["width"] and not (i + 1 < len(ends) and ends[i + 1][0] == end):
            shadow = end
            break
    extra = room - jobs[queue[0]]["width"]
    for j in queue[1:]:
        width = jobs[j]["width"]
        if width > free:
            continue
        if now + jobs[j]["limit"] > shadow:
            if width > extra:
                continue
            extra -= width
        free -= width
        start[j] = now
