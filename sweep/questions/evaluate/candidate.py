"""A candidate's process: reads a policy from a text, and calls it for one run.

It serves one run of the policy, and then ends: nothing that it learns reaches another run. All that
it gets is in messages of the evaluator, which it believes; all that it says is in messages that the
evaluator checks (`sweep.questions.evaluate.messages`).
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import mmap
import os
import pickle
import struct
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from policies.base import Policy
from policies.knows import Knows
from policies.views import Reader, View
from sim.base.errors import PolicyError
from sim.engine.plan import Batch, World
from sweep.questions.evaluate import messages, plans
from sweep.questions.evaluate.seal import seal

MODULE = "candidate"
"""Name of a candidate's module."""
BATCH = struct.Struct("<ddII?")
"""Head of a batch: now, timer, number of events, deferred events, whether times follow."""
LENGTH = struct.Struct("<Q")
SHARED_BYTES = 2**28
"""Size of the shared file, of which what is not used takes no room."""
MAX_TEXT = 400


def serve(inbox: int, outbox: int, shared: int) -> None:
    """Serve one run over two pipes; counters of the run are in a file that is shared."""
    order = _receive(inbox)
    with contextlib.suppress(Exception):  # an error of the text is told when it runs
        for name in _imports(order["source"]):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    block = mmap.mmap(shared, SHARED_BYTES, prot=mmap.PROT_READ)
    is_filtered = seal(order["cpu_s"], order["memory_mb"])
    file = order["file"]
    try:
        policy = _load(order["source"], file)
        _send(outbox, {"hello": _about(policy), "is_filtered": is_filtered})
        _run(policy, inbox, outbox, block)
    except BaseException as error:
        _send(outbox, {"error": _describe(error, file)})


def _receive(inbox: int) -> Any:
    (n,) = LENGTH.unpack(messages.read_bytes(inbox, LENGTH.size))
    return pickle.loads(messages.read_bytes(inbox, n))


def _send(outbox: int, content: Any) -> None:
    messages.write(outbox, [messages.pack(content)])


def _imports(source: str) -> Iterator[str]:
    """Yield the modules that a text imports: once sealed, there are no files to import from."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _load(source: str, file: str) -> Policy:
    """Run the text of a module; build the policy that it defines."""
    module = types.ModuleType(MODULE)
    module.__file__ = file
    sys.modules[MODULE] = module
    exec(compile(source, file, "exec"), vars(module))
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Policy) and value.__module__ == MODULE
    ]
    registered = [cls for cls in classes if vars(cls).get("name")]
    candidates = registered or classes
    if len(candidates) != 1:
        names = ", ".join(cls.__name__ for cls in candidates) or "none"
        raise PolicyError(
            f"a candidate defines one policy, a subclass of policies.Policy, not {names}; put "
            "@policies.register(...) above the one that counts"
        )
    return candidates[0]()


def _about(policy: Policy) -> dict[str, Any]:
    if not isinstance(policy.knows, Knows):
        raise PolicyError(f"knows must be a policies.Knows, not {type(policy.knows).__name__}")
    knows = policy.may_know
    return {
        "name": str(policy.name or type(policy).__name__),
        "events": int(policy.events),
        "knows": [str(getattr(knows, field.name)) for field in fields(Knows)],
        "demands": str(policy.demands),
        "has_own_lag": bool(policy.has_own_lag),
        "own_columns": [str(name) for name in policy.own_columns],
    }


def _run(policy: Policy, inbox: int, outbox: int, block: mmap.mmap) -> None:
    order = _receive(inbox)
    views, used = {}, 0
    for name, dtype, shape in order["views"]:
        n = int(np.prod(shape))
        views[name] = view = np.frombuffer(block, dtype, n, used).reshape(shape)
        used += view.nbytes
    columns = _view(policy, order["columns"])
    world = World(columns, order["cluster"], order["seed"], views)
    plan = plans.NotedPlan(*order["sizes"])
    memory = policy.begin(world, plan)
    _send(outbox, {"plan": plans.describe(plan)})
    react = policy.react
    last = plan.estimate_s.copy()
    while True:
        head = messages.read_bytes(inbox, BATCH.size)
        now, plan.timer_s, n, _, has_times = BATCH.unpack(head)
        events = messages.read_bytes(inbox, n * (16 if has_times else 8))
        kind = np.frombuffer(events, np.int32, n)
        row = np.frombuffer(events, np.int32, n, 4 * n)
        times = np.frombuffer(events, np.float64, n, 8 * n) if has_times else None
        react(memory, Batch(now, kind, row, times), world, plan)
        estimate_s = None
        if not np.array_equal(plan.estimate_s, last, equal_nan=True):
            last = plan.estimate_s.copy()
            estimate_s = last
        changes = {"calls": plan.take_calls(), "estimate_s": estimate_s, **plans.moving(plan)}
        _send(outbox, changes)


def _view(policy: Policy, known: dict[str, Any]) -> View:
    """Return the columns that it was sent; the evaluator has left out the others."""
    for value in known.values():
        if hasattr(value, "setflags"):
            value.setflags(write=False)
    return View(known, Reader(policy.name or type(policy).__name__, policy.may_know))


def _describe(error: BaseException, file: str) -> dict[str, Any]:
    """Return type, message and innermost line in the candidate of an error."""
    line, function = 0, ""
    if isinstance(error, SyntaxError) and error.filename == file:
        line = error.lineno or 0
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file:
            line, function = number, frame.f_code.co_name
    message = str(error.msg if isinstance(error, SyntaxError) else error)
    kind = type(error).__name__
    return {"type": kind, "message": message[:MAX_TEXT], "line": line, "function": function}


def run(inbox: int, outbox: int, shared: int, end: Callable[[int], Any] = os._exit) -> None:
    """Leave all other files, serve, and end."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        _close_all_but({0, 1, 2, inbox, outbox, shared})
        serve(inbox, outbox, shared)
    finally:
        end(0)


def _close_all_but(numbers: set[int]) -> None:
    first = 3
    for number in sorted(n for n in numbers if n >= first):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, max(4096, first))
