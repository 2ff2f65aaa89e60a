"""Nodes of a cluster: checked when they join, excluded if they differ from the driver.

A label selector keeps cells away from nodes that are bad, and from those that have not answered
yet. To Ray, a node that comes back is another one: it is checked again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sim.base.errors import InputError, summary_line
from sweep.execution.on_ray import preflight
from sweep.execution.on_ray.environment import suspects
from sweep.execution.on_ray.failures import FailureTracker
from sweep.execution.progress import Line

if TYPE_CHECKING:
    from sweep.store.cell import CellResult, CellSpec

ANSWER_TIMEOUT_S = 120.0
"""A node that has not answered by then is reported; cells go there once it has."""
MAX_WAIT_S = 20.0
RECHECK_EVERY_S = 30.0
MAX_FAILED_CHECKS, MAX_CHECKS = 2, 3
"""Checks of a node that reports a fault, and of one whose answers are lost."""
RECHECK_DELAY_S = 3.0
LABEL = "ray.io/node-id"


@dataclass
class Node:
    """State of a node.

    Attributes
    ----------
    name : str
        Host and address, for people.
    address : str
        Address in the cluster's network.
    n_cpus, memory : float
        Resources by Ray; memory in bytes.
    """

    name: str
    address: str
    n_cpus: float
    memory: float
    state: Literal["checking", "silent", "good", "bad"] = "checking"
    answer: Any = None  # reference to the result of its check
    check_start_s: float = 0.0
    n_checks: int = 0
    next_check_s: float = 0.0  # time of the next check; 0: none
    is_draining: bool = False  # announced as draining


class Nodes:
    """Nodes that Ray lists, with their states."""

    def __init__(self) -> None:
        self._environment: preflight.Environment | None = None
        self._up: dict[str, Node] = {}
        self._known: dict[str, Node] = {}  # including nodes that are gone
        self._failures = FailureTracker()
        self._lines: list[Line] = []
        self._last_recheck_s = -RECHECK_EVERY_S

    def expect(
        self,
        specs: Iterable[CellSpec],
        python_path: Sequence[str],
        trace_modules: Sequence[str] = (),
        *,
        is_sent: bool = True,
    ) -> None:
        """Set the cells to run: nodes that join from now on are checked for them."""
        self._environment = {
            **preflight.driver_environment(specs, python_path, trace_modules),
            "sent": is_sent,
        }

    @property
    def modules(self) -> list[str]:
        """All modules that the cells come from."""
        return list(self._environment["table"]) if self._environment is not None else []

    def update(self, listed: Iterable[Mapping[str, Any]], draining: Iterable[str] = ()) -> None:
        """Update the nodes that are up and those that are draining; check the new ones."""
        up = {entry["NodeID"]: entry for entry in listed}
        for node_id in self._up.keys() - up.keys():
            del self._up[node_id]
        for node_id, entry in up.items():
            if node_id not in self._up:
                resources = entry["Resources"]
                address = entry.get("NodeManagerAddress", "")
                cpus, memory = resources.get("CPU", 0.0), resources.get("memory", 0.0)
                node = Node(display_name(entry), address, cpus, memory)
                self._up[node_id] = self._known[node_id] = node
                if node.n_cpus >= 1 and self._environment is not None:
                    self._start_check(node_id, node, self._environment)
                else:
                    node.state = "good"
        for node_id in draining:
            if node_id in self._up and not self._up[node_id].is_draining:
                self._up[node_id].is_draining = True
                self._report(node_id, "is draining; its cells run on other nodes")
        self._collect_answers()

    def good(self) -> dict[str, Node]:
        """Return the nodes that cells may run on."""
        return {key: n for key, n in self._up.items() if n.state == "good" and not n.is_draining}

    def waits(self) -> bool:
        """Tell whether to wait for checks: for the first good node, then a while for others.

        A task that is handed out never goes to a node that has not answered by then.
        """
        start_times_s = [
            node.check_start_s for node in self._up.values() if node.state == "checking"
        ]
        is_any_good = any(node.n_cpus >= 1 for node in self.good().values())
        return bool(start_times_s) and (
            not is_any_good or time.monotonic() < min(start_times_s) + MAX_WAIT_S
        )

    def placement_options(self, excluded_node: str = "", node: str = "") -> dict[str, Any]:
        """Return the options of a task that keep it away from nodes that may not run cells.

        It runs on `node`, if that is not empty, while it is up.
        """
        good = self.good()
        excluded = sorted(
            key
            for key in self._up
            if key not in good or (key == excluded_node and self.has_other(excluded_node))
        )
        selector = {"label_selector": {LABEL: f"!in({','.join(excluded)})"}} if excluded else {}
        return {**selector, **(pinned(node, soft=True) if node else {})}

    def has_other(self, excluded_node: str) -> bool:
        """Tell whether there is a node for cells other than `excluded_node`."""
        return any(key != excluded_node and node.n_cpus >= 1 for key, node in self.good().items())

    def name(self, node_id: str) -> str:
        """Return a node's name for people; any other text unchanged."""
        return self._known[node_id].name if node_id in self._known else node_id

    def must_retry(self, result: CellResult, policy: str) -> bool:
        """Tell whether to try a failed cell again, on another node.

        A failure on a node that should have no cells, as it is bad or not checked yet, counts for
        nothing.
        """
        if self._environment is None or (
            result.error is None and not self.excluded_node(result.key)
        ):
            return False
        if result.error is not None and self._is_excluded(result.node):
            return True
        retry = self._failures.must_retry(result, policy, self.has_other(result.node))
        for node_id, message in self._failures.pop_bad_nodes().items():
            self._exclude(node_id, f"cells failed there and succeeded on other nodes: {message}")
        return retry

    def was_excluded(self, error: Exception) -> bool:
        """Tell whether a task was lost on a node that was excluded or draining.

        The cause may have arisen since the node's check, as a full disk: nodes are checked again.
        """
        self._recheck()
        text, address = str(error), getattr(error, "ip", None)
        at_address = [key for key, node in self._up.items() if node.address == address]
        involved = [key for key in self._known if key in text] or at_address
        return bool(involved) and not any(
            self._known[key].state == "good" and not self._known[key].is_draining
            for key in involved
        )

    def _is_excluded(self, node_id: str) -> bool:
        return bool(node_id) and (node_id not in self._up or self._up[node_id].state != "good")

    def excluded_node(self, key: str) -> str:
        """Return the node on which a cell must not be tried again; empty for none."""
        return self._failures.failed_node(key)

    def pop_lines(self) -> Iterator[Line]:
        """Yield what is to be reported of nodes, once."""
        lines, self._lines = self._lines, []
        yield from lines

    def check_any_usable(self) -> None:
        """Raise InputError if all nodes are bad, so that no cell can run."""
        with_cpus = [node for node in self._up.values() if node.n_cpus >= 1]
        if with_cpus and all(node.state == "bad" for node in with_cpus):
            raise InputError(
                "no node of the cluster can run this sweep's cells, for the reasons above: fix "
                "one, or run here with launcher=local",
                rule="no node",
            )

    def forget(self) -> None:
        """Forget the nodes that are up, as the connection that they answered is gone."""
        self._up.clear()

    def _start_check(self, node_id: str, node: Node, environment: preflight.Environment) -> None:
        import ray

        # by value: the node may not have the module
        ray.cloudpickle.register_pickle_by_value(preflight)
        check = ray.remote(preflight.check_node)
        options = {"max_retries": 0, "num_cpus": 0, **pinned(node_id)}
        node.answer = check.options(**options).remote(environment)
        node.check_start_s, node.next_check_s = time.monotonic(), 0.0
        node.n_checks += 1

    def _recheck(self) -> None:
        """Check good nodes once more, at intervals."""
        if self._environment is None or time.monotonic() < self._last_recheck_s + RECHECK_EVERY_S:
            return
        self._last_recheck_s = time.monotonic()
        for node_id, node in self.good().items():
            if node.n_cpus >= 1 and node.answer is None:
                self._start_check(node_id, node, self._environment)

    def _collect_answers(self) -> None:
        """Collect the results of finished checks."""
        import ray

        for node_id, node in self._up.items():
            if node.answer is None:
                if (
                    node.next_check_s
                    and time.monotonic() >= node.next_check_s
                    and self._environment is not None
                ):
                    self._start_check(node_id, node, {**self._environment, "again": True})
                continue
            ready, _ = ray.wait([node.answer], timeout=0)
            if ready:
                answer, node.answer = node.answer, None
                self._take_answer(node_id, node, answer)
            elif (
                node.state == "checking"
                and time.monotonic() > node.check_start_s + ANSWER_TIMEOUT_S
            ):
                node.state = "silent"
                self._report(
                    node_id, f"has not answered for {ANSWER_TIMEOUT_S:.0f} s; it gets no cells"
                )

    def _take_answer(self, node_id: str, node: Node, answer: Any) -> None:
        import ray

        try:
            faults = ray.get(answer)
        except ray.exceptions.RuntimeEnvSetupError as error:
            *_, last = str(error).strip().splitlines()
            message = f"Ray can't set up the environment of tasks there ({last.strip()})"
            way_out = "its disk may be full: make room, and let it join again"
            faults = [f"{message}; {way_out}{suspects()}"]
        except (ray.exceptions.RayError, OSError) as error:
            if node.n_checks < MAX_CHECKS and self._environment is not None:
                self._start_check(node_id, node, self._environment)
                return
            full = "its checks die each time; its disk or memory may be full"
            faults = [f"{full}: make room, and let it join again ({summary_line(error)})"]
        if faults and node.n_checks < MAX_FAILED_CHECKS and self._environment is not None:
            # Ray may take code that it is still unpacking for unpacked
            node.next_check_s = time.monotonic() + RECHECK_DELAY_S
        elif faults:
            self._exclude(node_id, "; ".join(faults))
        else:
            node.state, node.n_checks = "good", 0

    def _exclude(self, node_id: str, reason: str) -> None:
        if node_id in self._up and self._up[node_id].state != "bad":
            self._up[node_id].state = "bad"
            self._report(node_id, f"is excluded: {reason}")

    def _report(self, node_id: str, text: str) -> None:
        self._lines.append(Line(f"node {self.name(node_id)} {text}"))


def pinned(node_id: str, *, soft: bool = False) -> dict[str, Any]:
    """Return the options of a task that runs on one node; elsewhere if `soft` and it is gone."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node_id, soft=soft)}


def display_name(entry: Mapping[str, Any]) -> str:
    """Name of a node for people: its host and, except on loopback, its address."""
    host, address = entry.get("NodeManagerHostname", ""), entry.get("NodeManagerAddress", "")
    return f"{host} ({address})" if address and not address.startswith("127.") else host or address


def draining_nodes() -> list[str]:
    """Ids of the nodes that are announced to be taken away.

    `ray.nodes` does not say so, and `ray.util.state` needs a dashboard.
    """
    with contextlib.suppress(Exception):  # not public in Ray: without it they go unannounced
        from ray._private.state import state

        return list(state.get_draining_nodes())
    return []
