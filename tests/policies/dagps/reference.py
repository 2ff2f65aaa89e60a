"""Reference implementation of BuildSchedule in slow, obvious Python, without mirrored spaces."""

from itertools import product


class Graph:
    """Parents and children of single tasks."""

    def __init__(self, dag):
        n = len(dag.duration)
        self.duration = [float(d) for d in dag.duration]
        self.stage = [int(g) for g in dag.task_stage]
        self.demand = [[int(x) for x in dag.demand[g]] for g in self.stage]
        self.parents = [[] for _ in range(n)]
        self.children = [[] for _ in range(n)]
        for p in range(len(dag.task0) - 1):
            for e in range(dag.edge0[p], dag.edge0[p + 1]):
                c = dag.edge_child[e]
                parent_tasks = range(dag.task0[p], dag.task0[p + 1])
                child_tasks = range(dag.task0[c], dag.task0[c + 1])
                pairs = (
                    product(parent_tasks, child_tasks)
                    if dag.edge_kind[e] == 0
                    else zip(parent_tasks, child_tasks, strict=False)
                )
                for a, b in pairs:
                    self.children[a].append(b)
                    self.parents[b].append(a)

    def reachable(self, tasks, edges):
        """Return the tasks that are reachable from `tasks`, themselves only if reached."""
        reached, todo = set(), list(tasks)
        while todo:
            for other in edges[todo.pop()]:
                if other not in reached:
                    reached.add(other)
                    todo.append(other)
        return reached

    def label_tasks(self, picked):
        below = self.reachable(picked, self.children)
        above = self.reachable(picked, self.parents)
        trouble = set(picked) | (below & above)
        everything = set(range(len(self.duration)))
        return trouble, everything - trouble - below - above, above - trouble, below - trouble


class Plane:
    """Resource-time space: begin, end and machine of each placed task."""

    def __init__(self, graph, capacity, placed=None):
        self.graph, self.capacity = graph, [[int(x) for x in row] for row in capacity]
        self.placed = dict(placed or {})  # task: (begin, end, machine)

    def copy(self):
        return Plane(self.graph, self.capacity, self.placed)

    @property
    def begin(self):
        return min((p[0] for p in self.placed.values()), default=0.0)

    @property
    def end(self):
        return max((p[1] for p in self.placed.values()), default=0.0)

    @property
    def span(self):
        return self.end - self.begin

    def room_at(self, machine, demand, runs):
        demands = [
            self.graph.demand[t] for t, p in self.placed.items() if p[2] == machine and runs(p)
        ]
        return all(
            sum(h[r] for h in demands) + d <= self.capacity[machine][r]
            for r, d in enumerate(demand)
        )

    def fits_from(self, machine, t, begin):
        end, demand = begin + self.graph.duration[t], self.graph.demand[t]
        instants = [begin, *(p[0] for p in self.placed.values() if begin < p[0] < end)]
        return all(self.room_at(machine, demand, lambda p, x=x: p[0] <= x < p[1]) for x in instants)

    def fits_until(self, machine, t, end):
        begin, demand = end - self.graph.duration[t], self.graph.demand[t]
        instants = [end, *(p[1] for p in self.placed.values() if begin < p[1] < end)]
        return all(self.room_at(machine, demand, lambda p, x=x: p[0] < x <= p[1]) for x in instants)

    def forward(self, tasks):
        space, graph, base = self.copy(), self.graph, self.begin
        left = set(tasks)
        while left:
            ready = [t for t in left if not left.intersection(graph.parents[t])]
            t = min(ready, key=lambda t: (-graph.duration[t], t))
            placed = space.placed
            release = max([base, *(placed[p][1] for p in graph.parents[t] if p in placed)])
            times = sorted({release, *(p[1] for p in placed.values() if p[1] > release)})
            begin, machine = next(
                (x, m) for x in times for m in range(len(self.capacity)) if space.fits_from(m, t, x)
            )
            placed[t] = (begin, begin + graph.duration[t], machine)
            left.remove(t)
        return space

    def backward(self, tasks):
        space, graph, base = self.copy(), self.graph, self.end
        left = set(tasks)
        while left:
            ready = [t for t in left if not left.intersection(graph.children[t])]
            t = min(ready, key=lambda t: (-graph.duration[t], t))
            placed = space.placed
            due = min([base, *(placed[c][0] for c in graph.children[t] if c in placed)])
            times = sorted({due, *(p[0] for p in placed.values() if p[0] < due)}, reverse=True)
            end, machine = next(
                (x, m)
                for x in times
                for m in range(len(self.capacity))
                if space.fits_until(m, t, x)
            )
            placed[t] = (end - graph.duration[t], end, machine)
            left.remove(t)
        return space

    def more_compact(self, tasks):
        return most_compact([self.forward(tasks), self.backward(tasks)])


def most_compact(spaces):
    return min(spaces, key=lambda s: s.span)  # the first of equals


def candidate_sets(graph, dag, capacity):
    """The sets T, O, P, C of every discriminative pair of thresholds, in the documented order."""
    total = [sum(int(row[r]) for row in capacity) for r in range(len(capacity[0]))]
    frag = []
    for g in range(len(dag.task0) - 1):
        tasks = range(dag.task0[g], dag.task0[g + 1])
        alone = Plane(graph, capacity).forward(tasks).span
        work = sum(graph.duration[t] for t in tasks)
        load = max(work * (int(d) / max(c, 1)) for d, c in zip(dag.demand[g], total, strict=True))
        frag.append(load / alone if alone > 0 else 1.0)
    seen = []
    for shortest in sorted(set(graph.duration), reverse=True):
        for f in [-1.0, *sorted(set(frag))]:
            picked = [
                t
                for t in range(len(graph.duration))
                if graph.duration[t] >= shortest or frag[graph.stage[t]] <= f
            ]
            sets = graph.label_tasks(picked)
            if sets[0] not in [earlier[0] for earlier in seen]:
                seen.append(sets)
    return seen


def build_schedule(dag, capacity):
    """The most compact space for one part, all candidates tried."""
    graph = Graph(dag)
    spaces = []
    for trouble, other_tasks, above, below in candidate_sets(graph, dag, capacity):
        space = Plane(graph, capacity).more_compact(trouble)
        spaces += [
            space.more_compact(other_tasks).forward(below).backward(above),
            space.more_compact(other_tasks).backward(above).forward(below),
            space.forward(below).backward(other_tasks).backward(above),
            space.backward(above).forward(other_tasks).forward(below),
        ]
    return most_compact(spaces)
