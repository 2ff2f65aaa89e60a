"""The improved variant as slow, obvious Python: one job at a time, lists and dictionaries."""

from __future__ import annotations

TREE, NARROW, WIDE = 1, 2, 3
TRIES = 32


class Random:
    """L'Ecuyer's combined generator, CACM 31 (1988), as printed there, with its skips undone."""

    def __init__(self, first: int, second: int) -> None:
        self.first, self.second = first, second

    def uniform(self) -> float:
        self.first = 40_014 * self.first % 2_147_483_563
        self.second = 40_692 * self.second % 2_147_483_399
        z = self.first - self.second
        return (z + 2_147_483_562 if z < 1 else z) / 2_147_483_563

    def below(self, n: int) -> int:
        return int(self.uniform() * n)

    def shuffle(self, items: list[int], n: int) -> None:
        for i in range(n):
            pick = i + self.below(len(items) - i)
            items[i], items[pick] = items[pick], items[i]


def pick(histogram, limit: int, u: float) -> int:
    """Draw from a histogram's values of at most `limit`."""
    pairs = zip(histogram.values.tolist(), histogram.counts.tolist(), strict=True)
    allowed = [(int(value), count) for value, count in pairs if value <= limit]
    ticket = int(u * sum(count for _, count in allowed))
    for value, count in allowed:
        ticket -= count
        if ticket < 0:
            return value
    raise AssertionError("the ticket is past the table")


def lookup(table, *conditions: int):
    """Look up the histogram of a conditional table or a grid."""
    for condition in conditions:
        parts = table.parts
        part = 0
        while part + 1 < len(table.lower) and table.lower[part + 1] <= condition:
            part += 1
        table = parts[part]
    return table


def rate(counts) -> list[float]:
    return [n / max(total, 1) for n, total in counts.tolist()]


def further_stages(tables, length: int) -> list[float]:
    """Stages on each level beyond the first of each job, by the tables."""
    lower = tables.level.lower.tolist()
    cell = max([i for i, low in enumerate(lower) if low <= length], default=0)
    low = lower[cell] if cell else 0
    high = lower[cell + 1] - 1 if cell + 1 < len(lower) else 10**9
    counts = dict.fromkeys(range(1, length + 1), 0.0)
    table = tables.level.parts[cell]
    for value, count in zip(table.values.tolist(), table.counts.tolist(), strict=True):
        if value <= length:
            counts[int(value)] += count
    for table in tables.length.parts:
        for value, n_jobs in zip(table.values.tolist(), table.counts.tolist(), strict=True):
            if low <= value <= high:
                for level in range(1, min(int(value), length) + 1):
                    counts[level] -= n_jobs
    return [max(n, 0.0) for n in counts.values()]


def run_ends(tables, links, length: int, shape: int) -> list[float]:
    """Chances that a run of further stages ends on each level."""
    part = further_stages(tables, length)
    if length > 1:
        part[-1] = sum(part[:-1]) / (length - 1) if shape == WIDE else 0.0
    if not any(part):
        part = [1.0] * max(1, length - 1) + [0.0] * (length > 1)
    total = sum(part)
    part = [n / total for n in part]
    if 0 < part[0] < 1:
        top = min(links.first[shape - 1] * part[0], 0.95)
        rest = (1 - top) / (1 - part[0])
        part = [top] + [n * rest for n in part[1:]]
    run = links.run_tree if shape == TREE else links.run_other
    ends = [max(n - run * after, 0.0) for n, after in zip(part, [*part[1:], 0.0], strict=True)]
    return [n / sum(ends) for n in ends]


def draw_sizes(ends: list[float], n_stages: int, shape: int, run: float, random) -> list[int]:
    sizes = [1] * len(ends)
    left = n_stages - len(ends)
    if shape == WIDE and left > 0:
        sizes[-1] += 1
        left -= 1
    last = max(i for i, chance in enumerate(ends) if chance > 0)
    while left > 0:
        u, i, below = random.uniform(), 0, ends[0]
        while i < last and below <= u:
            i += 1
            below += ends[i]
        sizes[i] += 1
        left -= 1
        while left > 0 and i > 0 and random.uniform() < run:
            i -= 1
            sizes[i] += 1
            left -= 1
    return sizes


def draw_edges(links, sizes: list[int], shape: int, random: Random) -> list[tuple[int, int]]:
    for _ in range(TRIES):
        edges = try_edges(links, sizes, shape, random)
        parents = [parent for parent, _ in edges]
        is_tree = len(edges) == sum(sizes) - 1 and len(set(parents)) == len(parents)
        if shape == TREE or not is_tree:
            break
    return sorted(edges)


def try_edges(links, sizes: list[int], shape: int, random: Random) -> list[tuple[int, int]]:
    tree = shape == TREE
    levels, n = [], 0
    for size in sizes:
        levels.append(list(range(n, n + size)))
        n += size
    depth = len(sizes)
    n_in = dict.fromkeys(range(n), 0)
    full_path = set(levels[0])
    joined = {0: levels[0]}
    idle_later, edges = [], []
    scatter = rate(links.scatter)

    def weighted(stages, weights):
        chosen = 0
        for _ in range(TRIES):
            chosen = random.below(len(stages))
            if random.uniform() * max(weights) <= weights[min(n_in[stages[chosen]], 2)]:
                break
        return stages[chosen]

    for i in range(depth - 1):
        late = i == depth - 2
        table = links.idle_tree if tree else links.idle_late if late else links.idle_other
        chance = rate(table)
        busy, idle = [], []
        for stage in levels[i]:
            is_idle = not (tree and late) and random.uniform() < chance[min(n_in[stage], 2)]
            (idle if is_idle else busy).append(stage)
        if not full_path & set(busy):
            recalled = next(stage for stage in idle if stage in full_path)
            idle.remove(recalled)
            busy.append(recalled)
        idle_later += [(stage, i) for stage in idle]
        next_level = list(levels[i + 1])
        n_max = min(len(busy), len(next_level)) if tree else len(next_level)
        n_children = 1
        if n_max > 1:
            if tree:
                joined_table = links.joined_tree
            elif i == 0:
                joined_table = links.joined_first
            else:
                some_join = any(n_in[stage] > 1 for stage in busy)
                joined_table = links.joined_again if some_join else links.joined_plain
            share = pick(lookup(joined_table, len(busy), len(next_level)), 1000, random.uniform())
            n_children += (share * (n_max - 1) + 500) // 1000
        room = len(busy) * n_children - max(len(busy), n_children)
        n_surplus = 0
        if room > 0 and not tree:
            share = pick(lookup(links.surplus, room), 1000, random.uniform())
            n_surplus = (share * room + 500) // 1000
        random.shuffle(busy, len(busy))
        random.shuffle(next_level, n_children)
        children = next_level[:n_children]
        joined[i + 1] = children
        near: list[tuple[int, int]] = []
        if len(busy) >= n_children:
            for k, parent in enumerate(busy):
                near.append((parent, children[k] if k < n_children else near[random.below(k)][1]))
        else:
            for k, child in enumerate(children):
                parent = busy[k] if k < len(busy) else -1
                if parent < 0:
                    # parents with more children are likelier to be drawn
                    for _ in range(TRIES):
                        parent = near[random.below(k)][0] if len(near) == k else -1
                        if random.uniform() * max(scatter) <= scatter[min(n_in[parent], 2)]:
                            break
                near.append((parent, child))
        for _ in range(n_surplus):
            for _ in range(TRIES):
                edge = (weighted(busy, scatter), children[random.below(n_children)])
                if edge not in near:
                    near.append(edge)
                    break
        for parent, child in near:
            n_in[child] += 1
            if parent in full_path:
                full_path.add(child)
        edges += near

    def far_child(level: int) -> int:
        span = pick(links.span, depth - 1 - level, random.uniform())
        candidates = joined[min(level + span, depth - 1)]
        return candidates[random.below(len(candidates))]

    n_far = 0
    if not tree and depth > 2:
        n_far = pick(lookup(links.far, n), 2**31, random.uniform())
    far = []
    far_idle = links.far_idle[0] / max(links.far_idle[1], 1)
    for stage, level in idle_later:
        if level < depth - 2 and (tree or random.uniform() < far_idle):
            far.append((stage, far_child(level)))
    # stages by level, those with parents first, as they were shuffled
    order = [stage for i in range(depth - 2) for stage in shuffled(levels[i], joined[i])]
    level_of = {stage: i for i, level in enumerate(levels) for stage in level}
    for _ in range(n_far):
        for _ in range(TRIES):
            stage = weighted(order, rate(links.far_busy))
            edge = (stage, far_child(level_of[stage]))
            if edge not in far:
                far.append(edge)
                break
    return edges + far


def shuffled(level: list[int], front: list[int]) -> list[int]:
    """Swap the stages of `front` to the front of the level, in their order."""
    items = list(level)
    for i, stage in enumerate(front):
        position = items.index(stage)
        items[i], items[position] = items[position], items[i]
    return items
