"""Reader of TPC-H and TPC-DS queries as stage DAGs, in the text format of the DAGPS simulator.

For each DAG: ``# id: BENCHMARK queryN``; ``n_stages dag_id [arrival_s]``; a line per stage, ``name
duration_s r1 ... r6 n_tasks``; ``n_edges``; a line per edge, ``parent child ata``. Demands are
fractions of one machine. Source: Grandl et al., *Do the hard stuff first*, MSR-TR-2016-19.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.base.acyclic import nodes_on_cycles
from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import Account, OnBadRow, no_job_left, read_text
from sim.workload.amounts import with_account
from sim.workload.workload import Workload

RESOURCES = ("cpu", "mem", "io1", "io2", "io3", "io4")
"""Resources of r1 to r6. The last four are disk and network I/O; which is which is not known."""
_QUANTUM = 0.01
_STAGE_FIELDS = 3 + len(RESOURCES)
_MAX_TASKS = 2**31
_HEAD = re.compile(r"#\s*\S+:\s*(.+)")
_WAY_OUT = "correct the file, or read it with on_bad_row=skip"


@dataclass
class _Dag:
    """One DAG of the file."""

    line: int
    query: str
    dag_id: str = ""
    arrival_s: float = 0.0
    names: dict[str, int] = field(default_factory=dict)
    numbers: list[list[float]] = field(default_factory=list)  # duration, r1 ... r6, tasks
    edges: list[tuple[int, int]] = field(default_factory=list)
    is_whole: bool = False  # all its lines could be read


@checked
def read(path: str | os.PathLike[str], *, on_bad_row: OnBadRow = "error") -> Workload:
    """Read a file of query DAGs.

    A DAG becomes a job, submitted at its arrival (0 if the file has none). Its id is the DAG's, its
    template the query's name. All tasks of a stage have the same duration, and all edges are
    barriers. Jobs are sorted by arrival, then by their order in the file.

    Parameters
    ----------
    path : path-like
        Plain or gzipped.
    on_bad_row : {"error", "skip"}
        Edges that name a stage the DAG doesn't have, that lead from a stage to itself or are
        repeated: raise, or drop and count. A DAG with another fault (two stages of one name, a
        cycle, the id of an earlier DAG, a line that can't be read): raise, or drop it as a whole,
        up to the next line ``# id: ...``, and count it.

    Returns
    -------
    Workload
        Demands ``cpu``, ``mem`` and ``io1`` to ``io4``, as fractions of one machine.
        ``meta["report"]`` counts jobs, stages and edges, and by rule ``edges_dropped`` and
        ``dropped``.

    Raises
    ------
    InputError
        With file, line and rule: "wrong line", "number out of range", "duplicate stage name",
        "duplicate id", "parent is not in the job", "parent is the stage itself", "parent is named
        twice", "cycle", "empty file".
    """
    reader = _DagReader(path, on_bad_row)
    dags = [dag for dag in reader.dags() if not reader.is_cyclic(dag)]
    if not dags:
        raise no_job_left(path, {}, reader.dropped)
    workload = _workload(sorted(dags, key=lambda d: d.arrival_s), reader)
    return with_account(workload, _account(dags, reader))


def _account(dags: list[_Dag], reader: _DagReader) -> Account:
    """Return the account of all DAGs; the work of one that can't be read is not known."""
    every = [*dags, *(dag for _, dag in reader.lost)]
    columns = [_amounts(dag) for dag in every]
    account = Account({kind: np.array([c[kind] for c in columns]) for kind in columns[0]})
    for number, (rule, _) in enumerate(reader.lost, len(dags)):
        account.leave_out(rule, np.array([number]))
    for rule, n in reader.edges_dropped.items():
        account.add(rule, edges=float(n))
    return account


def _amounts(dag: _Dag) -> dict[str, float]:
    """Return the amounts of a DAG by kind, demand × duration of resources; NaN if it was not read.

    Memory is a fraction of a machine's, as are the other resources.
    """
    kinds = [f"{name}_s" if name != "mem" else "mem_gib_s" for name in RESOURCES]
    if not dag.is_whole:
        return dict.fromkeys(("tasks", "edges", *kinds), np.nan)
    numbers = np.array(dag.numbers)
    work_s = numbers[:, 0] * numbers[:, -1]
    taken = {kind: float(np.sum(work_s * numbers[:, 1 + i])) for i, kind in enumerate(kinds)}
    return {"tasks": float(numbers[:, -1].sum()), "edges": float(len(dag.edges)), **taken}


class _DagReader:
    """Parser of the file, line by line, with counts of dropped DAGs and edges."""

    def __init__(self, path: str | os.PathLike[str], on_bad_row: OnBadRow) -> None:
        self.path = path
        self.on_bad_row = on_bad_row
        self.edges_dropped: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self.lost: list[tuple[str, _Dag]] = []  # dropped DAGs, by rule
        self.n_dags = 0
        self._lines = read_text(path).splitlines()
        self._line = 0  # number of the last line that was read, from 1
        self._ids: set[str] = set()

    def dags(self) -> Iterator[_Dag]:
        """Yield every DAG that can be read."""
        while (head := self._next()) is not None:
            self.n_dags += 1
            begin = self._line
            try:
                dag = self._dag(head)
            except InputError as error:
                if self.on_bad_row == "error":
                    raise
                self._drop_dag(error.rule, _Dag(begin, head))
                self._skip_to_next_head(begin)
            else:
                self._ids.add(dag.dag_id)
                yield dag

    def _dag(self, head: str) -> _Dag:
        match = _HEAD.fullmatch(head)
        if match is None:
            raise self._error(f"expected '# id: BENCHMARK queryN', found {head!r}")
        dag = _Dag(self._line, match[1].strip())
        edges_dropped = dict(self.edges_dropped)
        n_stages = self._size(dag)
        if dag.dag_id in self._ids:
            raise self._error(
                f"an earlier DAG has the id {dag.dag_id!r} too; {_WAY_OUT}", "duplicate id"
            )
        try:
            for _ in range(n_stages):
                self._stage(dag)
            (n_edges,) = self._numbers(self._fields(1, "the number of edges"))
            for _ in range(self._whole(n_edges, "the number of edges", 0)):
                self._edge(dag)
            dag.is_whole = True
        except InputError:
            self.edges_dropped = edges_dropped  # the whole DAG is dropped, and not its edges
            raise
        return dag

    def _skip_to_next_head(self, begin: int) -> None:
        """Skip the rest of a DAG that can't be read, whose head is line `begin`."""
        if self._line > begin:
            self._line -= 1  # the line with the error may be the next DAG's head
        for line in self._lines[self._line :]:
            if _HEAD.fullmatch(line.strip()):
                break
            self._line += 1

    def is_cyclic(self, dag: _Dag) -> bool:
        """Return whether the edges of `dag` form a cycle; count the cycle, or raise."""
        parent, child = np.array(dag.edges, np.int32).reshape(-1, 2).T
        nodes = nodes_on_cycles(parent, child, len(dag.names))
        if not len(nodes):
            return False
        if self.on_bad_row == "error":
            names = ", ".join(sorted(list(dag.names)[n] for n in nodes))
            self._line = dag.line
            raise self._error(
                f"stages {names} of {dag.query} wait for each other; {_WAY_OUT}", "cycle"
            )
        self._drop_dag("cycle", dag)
        return True

    def _size(self, dag: _Dag) -> int:
        fields = self._fields((2, 3), "n_stages dag_id [arrival_s]")
        dag.dag_id = fields[1]
        n_stages, *arrival = self._numbers([fields[0], *fields[2:]])
        if arrival:
            dag.arrival_s = arrival[0]
        return self._whole(n_stages, "the number of stages", 1)

    def _stage(self, dag: _Dag) -> None:
        name, *rest = self._fields(_STAGE_FIELDS, "name duration_s r1 r2 r3 r4 r5 r6 n_tasks")
        numbers = self._numbers(rest)
        self._whole(numbers[-1], "the number of tasks", 1)
        if name in dag.names:
            raise self._error(
                f"{dag.query} has two stages {name!r}; {_WAY_OUT}", "duplicate stage name"
            )
        dag.names[name] = len(dag.names)
        dag.numbers.append(numbers)

    def _edge(self, dag: _Dag) -> None:
        parent, child, kind = self._fields(3, "parent child ata")
        if kind != "ata":
            raise self._error(f"an edge must be 'ata' (all to all), not {kind!r}")
        missing = [name for name in (parent, child) if name not in dag.names]
        if missing:
            rule = "parent is not in the job"
            self._drop_edge(rule, f"{dag.query} has no stage {missing[0]!r}")
        elif parent == child:
            self._drop_edge("parent is the stage itself", f"{parent!r} waits for itself")
        elif (edge := (dag.names[parent], dag.names[child])) in dag.edges:
            self._drop_edge("parent is named twice", f"the edge {parent} {child} is repeated")
        else:
            dag.edges.append(edge)

    def _drop_edge(self, rule: str, text: str) -> None:
        if self.on_bad_row == "error":
            raise self._error(f"{text}; {_WAY_OUT}", rule)
        self.edges_dropped[rule] = self.edges_dropped.get(rule, 0) + 1

    def _drop_dag(self, rule: str | None, dag: _Dag) -> None:
        counted = f"{rule} (whole job)"
        self.lost.append((counted, dag))
        self.dropped[counted] = self.dropped.get(counted, 0) + 1

    def _next(self) -> str | None:
        while self._line < len(self._lines):
            self._line += 1
            if text := self._lines[self._line - 1].strip():
                return text
        return None

    def _fields(self, n: int | tuple[int, ...], expected: str) -> list[str]:
        line = self._next()
        if line is None:
            raise self._error(f"the file ends where '{expected}' is expected")
        fields = line.split()
        if len(fields) not in (n if isinstance(n, tuple) else (n,)):
            raise self._error(f"expected '{expected}', found {line!r}")
        return fields

    def _numbers(self, texts: list[str]) -> list[float]:
        numbers = []
        for text in texts:
            try:
                numbers.append(float(text))
            except ValueError:
                raise self._error(f"expected a number, found {text!r}") from None
            if not (np.isfinite(numbers[-1]) and numbers[-1] >= 0):
                raise self._error(
                    f"a number must be finite and at least 0, not {text}", "number out of range"
                )
        return numbers

    def _whole(self, number: float, name: str, minimum: int) -> int:
        if number != int(number) or not minimum <= number < _MAX_TASKS:
            raise self._error(
                f"{name} must be a whole number of at least {minimum}, not {number:g}",
                "number out of range",
            )
        return int(number)

    def _error(self, message: str, rule: str = "wrong line") -> InputError:
        return InputError(message, file=self.path, line=self._line, rule=rule)


def _workload(dags: list[_Dag], reader: _DagReader) -> Workload:
    n_stages = [len(dag.names) for dag in dags]
    stage0 = np.cumsum([0, *n_stages])
    numbers = np.array([row for dag in dags for row in dag.numbers])
    edges = [np.array(d.edges).reshape(-1, 2) + s for d, s in zip(dags, stage0, strict=False)]
    parent, child = np.concatenate(edges).astype(np.int32).T
    stages: dict[str, Any] = {
        "job": np.repeat(np.arange(len(dags), dtype=np.int32), n_stages),
        "name": [name for dag in dags for name in dag.names],
        "n_tasks": numbers[:, -1].astype(np.int32),
        "duration_s": numbers[:, 0],
    }
    for i, resource in enumerate(RESOURCES):
        stages[f"demand_{resource}"] = numbers[:, 1 + i]
    arrival_s = np.array([dag.arrival_s for dag in dags])
    return Workload.from_tables(
        jobs={
            "job_id": [dag.dag_id for dag in dags],
            "submit_s": arrival_s - arrival_s[0],
            "template": [dag.query for dag in dags],
        },
        stages=stages,
        stage_edges={"parent": parent, "child": child},
        meta={
            "name": "tpc",
            "quantum": dict.fromkeys(RESOURCES, _QUANTUM),
            "offset_s": float(arrival_s[0]),
            "report": {
                "rows": reader.n_dags,
                "jobs": len(dags),
                "stages": len(numbers),
                "edges": len(parent),
                "dropped": reader.dropped,
                "edges_dropped": reader.edges_dropped,
            },
        },
    )
