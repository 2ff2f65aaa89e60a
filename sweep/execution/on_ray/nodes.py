"""The nodes of a cluster: checked when they join, left out if they are not as the driver is.

Ray is told by label where cells must not go: to nodes that were found bad, and to those that have
not answered yet. A node that comes back is another one to Ray, and is checked anew.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sim.base.errors import InputError, summary_line
from sweep.execution.on_ray import preflight
from sweep.execution.on_ray.failures import FailureTracker
from sweep.execution.progress import Line

if TYPE_CHECKING:
    from sweep.store.cell import CellResult, CellSpec

ANSWER_S = 120.0
"""A node that has not answered by then is named; cells go there once it has."""
PATIENCE_S = 20.0
DOUBT_S = 30.0
TWICE, TRIES = 2, 3
"""How often a node is asked that finds itself wrong, and one whose answer is lost."""
AGAIN_S = 3.0
LABEL = "ray.io/node-id"


@dataclass
class Node:
    """A node that takes cells, or would.

    Attributes
    ----------
    name : str
        For people: the host's, and its address.
    address : str
        In the cluster's network.
    n_cpus, memory : float
        What Ray was told it has; memory in bytes.
    """

    name: str
    address: str
    n_cpus: float
    memory: float
    state: Literal["asked", "silent", "good", "bad"] = "asked"
    answer: Any = None  # reference to what it says of itself
    asked_s: float = 0.0
    n_asked: int = 0
    again_s: float = 0.0  # when to ask it once more; 0: not at all
    is_going: bool = False  # it said that it will be taken away


class Nodes:
    """Those that Ray lists, and what is known of each."""

    def __init__(self) -> None:
        self._wanted: preflight.Expected | None = None
        self._up: dict[str, Node] = {}
        self._seen: dict[str, Node] = {}  # those that are gone, too
        self._strikes = FailureTracker()
        self._news: list[Line] = []
        self._doubted_s = -DOUBT_S

    def expect(
        self, specs: Iterable[CellSpec], python_path: Sequence[str], *, is_sent: bool = True
    ) -> None:
        """Say which cells will be run: nodes that join from now on are checked for them."""
        self._wanted = {**preflight.wanted(specs, python_path), "sent": is_sent}

    @property
    def modules(self) -> list[str]:
        """All modules that the cells come from."""
        return list(self._wanted["table"]) if self._wanted is not None else []

    def take_in(self, listed: Iterable[Mapping[str, Any]], going: Iterable[str] = ()) -> None:
        """Take in which nodes are up, and which of them will be taken away; ask the new ones."""
        up = {one["NodeID"]: one for one in listed}
        for gone in self._up.keys() - up.keys():
            del self._up[gone]
        for node_id, one in up.items():
            if node_id not in self._up:
                has = one["Resources"]
                at = one.get("NodeManagerAddress", "")
                node = Node(display_name(one), at, has.get("CPU", 0.0), has.get("memory", 0.0))
                self._up[node_id] = self._seen[node_id] = node
                if node.n_cpus >= 1 and self._wanted is not None:
                    self._ask(node_id, node, self._wanted)
                else:
                    node.state = "good"
        for node_id in going:
            if node_id in self._up and not self._up[node_id].is_going:
                self._up[node_id].is_going = True
                self._say(node_id, "will be taken away; its cells run elsewhere")
        self._hear()

    def good(self) -> dict[str, Node]:
        """Give those that cells may go to."""
        return {key: n for key, n in self._up.items() if n.state == "good" and not n.is_going}

    def waits(self) -> bool:
        """Tell whether to wait for answers before cells are handed out: for the first, or a while.

        A task that is handed out stays away from those who have not answered by then.
        """
        asked = [node.asked_s for node in self._up.values() if node.state == "asked"]
        is_any_good = any(node.n_cpus >= 1 for node in self.good().values())
        return bool(asked) and (not is_any_good or time.monotonic() < min(asked) + PATIENCE_S)

    def where(self, but: str = "") -> dict[str, Any]:
        """Give the options of a task that keep it away from nodes that may not have cells."""
        good = self.good()
        others = sorted(
            key for key in self._up if key not in good or (key == but and self.has(but))
        )
        return {"label_selector": {LABEL: f"!in({','.join(others)})"}} if others else {}

    def has(self, but: str) -> bool:
        """Tell whether there is another node for cells than `but`."""
        return any(key != but and node.n_cpus >= 1 for key, node in self.good().items())

    def name(self, node_id: str) -> str:
        """Return a node's name for people; what is no node's id as it is."""
        return self._seen[node_id].name if node_id in self._seen else node_id

    def is_tried_elsewhere(self, result: CellResult, policy: str) -> bool:
        """Tell whether a cell that has failed shall be tried again, on another node.

        One that reached a node that should have none, as it was found bad or is not known yet, is
        not on trial.
        """
        if self._wanted is None or (result.error is None and not self.but(result.key)):
            return False
        if result.error is not None and self._is_no_place(result.node):
            return True
        again = self._strikes.is_tried_elsewhere(result, policy, self.has(result.node))
        for node_id, why in self._strikes.over().items():
            self._leave_out(node_id, f"it failed cells that others did not: {why}")
        return again

    def is_at_fault(self, error: Exception) -> bool:
        """Tell whether a task was lost on a node that should have had none, or was announced.

        Whatever lost it may have befallen a node since it was asked: a disk may be full now.
        """
        self._ask_again()
        text, address = str(error), getattr(error, "ip", None)
        there = [key for key, node in self._up.items() if node.address == address]
        named = [key for key in self._seen if key in text] or there
        return bool(named) and not any(
            self._seen[key].state == "good" and not self._seen[key].is_going for key in named
        )

    def _is_no_place(self, node_id: str) -> bool:
        return bool(node_id) and (node_id not in self._up or self._up[node_id].state != "good")

    def but(self, key: str) -> str:
        """Return the node on which a cell must not be tried again; empty for none."""
        return self._strikes.failed_on(key)

    def news(self) -> Iterator[Line]:
        """Give once what is to be said of nodes."""
        said, self._news = self._news, []
        yield from said

    def insist(self) -> None:
        """Raise InputError if all are found bad, so that no cell can run anywhere."""
        able = [node for node in self._up.values() if node.n_cpus >= 1]
        if able and all(node.state == "bad" for node in able):
            raise InputError(
                "no node of the cluster can run this sweep's cells, as said above: mend one, or "
                "run here with launcher=local",
                rule="no node",
            )

    def forget(self) -> None:
        """Forget who is up: their answers were of a connection that is no more."""
        self._up.clear()

    def _ask(self, node_id: str, node: Node, wanted: preflight.Expected) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # as it stands: the node may not have the module
        ray.cloudpickle.register_pickle_by_value(preflight)
        where = NodeAffinitySchedulingStrategy(node_id, soft=False)
        look = ray.remote(preflight.look)
        options = {"max_retries": 0, "num_cpus": 0, "scheduling_strategy": where}
        node.answer = look.options(**options).remote(wanted)
        node.asked_s, node.n_asked, node.again_s = time.monotonic(), node.n_asked + 1, 0.0

    def _ask_again(self) -> None:
        """Ask those that have cells once more, but not all the time."""
        if self._wanted is None or time.monotonic() < self._doubted_s + DOUBT_S:
            return
        self._doubted_s = time.monotonic()
        for node_id, node in self.good().items():
            if node.n_cpus >= 1 and node.answer is None:
                self._ask(node_id, node, self._wanted)

    def _hear(self) -> None:
        """See who has answered."""
        import ray

        for node_id, node in self._up.items():
            if node.answer is None:
                if node.again_s and time.monotonic() >= node.again_s and self._wanted is not None:
                    self._ask(node_id, node, {**self._wanted, "again": True})
                continue
            ready, _ = ray.wait([node.answer], timeout=0)
            if ready:
                answer, node.answer = node.answer, None
                self._take(node_id, node, answer)
            elif node.state == "asked" and time.monotonic() > node.asked_s + ANSWER_S:
                node.state = "silent"
                self._say(node_id, f"does not answer for {ANSWER_S:.0f} s; no cells are sent there")

    def _take(self, node_id: str, node: Node, answer: Any) -> None:
        import ray

        try:
            wrong = ray.get(answer)
        except ray.exceptions.RuntimeEnvSetupError as error:
            *_, last = str(error).strip().splitlines()
            why = f"the sweep's code can't be unpacked there ({last.strip()})"
            wrong = [f"{why}: make room, and join it anew"]
        except (ray.exceptions.RayError, OSError) as error:
            if node.n_asked < TRIES and self._wanted is not None:
                self._ask(node_id, node, self._wanted)
                return
            full = "what looks at it ends each time, as where disk or memory is full"
            wrong = [f"{full}: make room, and join it anew ({summary_line(error)})"]
        if wrong and node.n_asked < TWICE and self._wanted is not None:
            # Ray takes what it is about to unpack for unpacked
            node.again_s = time.monotonic() + AGAIN_S
        elif wrong:
            self._leave_out(node_id, "; ".join(wrong))
        else:
            node.state, node.n_asked = "good", 0

    def _leave_out(self, node_id: str, why: str) -> None:
        if node_id in self._up and self._up[node_id].state != "bad":
            self._up[node_id].state = "bad"
            self._say(node_id, f"is left out: {why}")

    def _say(self, node_id: str, what: str) -> None:
        self._news.append(Line(f"node {self.name(node_id)} {what}"))


def display_name(listed: Mapping[str, Any]) -> str:
    """Name a node for people: by its host and, beside loopback, its address."""
    host, address = listed.get("NodeManagerHostname", ""), listed.get("NodeManagerAddress", "")
    return f"{host} ({address})" if address and not address.startswith("127.") else host or address


def going() -> list[str]:
    """Name the nodes that were announced to be taken away.

    `ray.nodes` does not say so, and `ray.util.state` needs a dashboard.
    """
    with contextlib.suppress(Exception):  # an inside of Ray's: without it they go unannounced
        from ray._private.state import state

        return list(state.get_draining_nodes())
    return []
