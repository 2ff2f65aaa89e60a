"""Candidates of the tests: first come first served around some lines of a policy's methods."""

from __future__ import annotations

import textwrap
from pathlib import Path

_CANDIDATE = """\
from dataclasses import dataclass

import numpy as np

from policies import Knows, Policy, register
from sim.plan import Batch, Event, Plan, Preemption, Queues, World
{head}

@register("candidate")
@dataclass(frozen=True)
class Candidate(Policy):
{body}
    def prepare(self, world, plan):
{prepare}

    def react(self, memory, batch, world, plan):
{react}
"""


def write(
    folder: Path, *, head: str = "", body: str = "", prepare: str = "pass", react: str = "pass"
) -> Path:
    """Write a candidate whose module and methods have some lines."""
    parts = {"head": textwrap.dedent(head), "body": textwrap.indent(textwrap.dedent(body), "    ")}
    for name, text in (("prepare", prepare), ("react", react)):
        parts[name] = textwrap.indent(textwrap.dedent(text).strip("\n"), "        ")
    file = folder / "mine.py"
    file.write_text(_CANDIDATE.format(**parts))
    return file
