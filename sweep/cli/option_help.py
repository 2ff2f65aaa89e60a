"""Help on single options: parameters of a policy or a trace; metrics and transforms."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Mapping
from typing import Any

import policies
from policies.base import meanings
from sim.base.errors import InputError
from sim.base.parameters import describe_type, type_hints
from sweep.grid import traces
from sweep.grid.options import Options

LINE = 120
"""Longest line, in characters."""
GIVEN = "???"
"""Value that has to be given."""
REAL_TRACES = "${paths.traces}"
"""Folder of the real traces, which are not a part of the project."""


def policy_help(options: Options, name: str) -> str:
    """Describe a policy, and the value and meaning of each parameter."""
    policy = _policy(options, name)
    values = {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    means, hints = meanings(type(policy)), type_hints(type(policy))
    lines = [f"policy={name}  {options.summary('policy', name)}", f"  knows {policy.may_know}"]
    lines += [_parameter("policy", key, value, means, hints) for key, value in values.items()]
    return "\n".join([*lines, ""])


def policy_summary(options: Options, name: str) -> str:
    """Return the summary of a policy's option, and how the policy knows durations, if it does."""
    summary = options.summary("policy", name)
    try:
        source = _policy(options, name).may_know.durations
    except InputError:  # a user's module that can't be imported: the rest of the list is of use
        return summary
    return summary if source == "nothing" else f"{summary} [{source} durations]"


def trace_summary(options: Options, name: str) -> str:
    """Return the summary of a trace's option, and which files it needs that do not come with it."""
    summary = options.summary("trace", name)
    values = _own_values(options, name)
    if GIVEN in values.values():
        return f"{summary} [your file]"
    path = str(values.get("path") or "")
    return f"{summary} [in paths.traces]" if path.startswith(REAL_TRACES) else summary


def _own_values(options: Options, name: str) -> dict[str, Any]:
    """Read an option's values and those of the options that it is based on, uncomposed."""
    option = options.plain("trace", name)
    known = options.names("trace")
    bases = [base for base in option.get("defaults") or () if base in known]
    values = {key: value for base in bases for key, value in _own_values(options, base).items()}
    return {**values, **option}


def _policy(options: Options, name: str) -> policies.Policy:
    """Build the policy of an option."""
    option = options.plain("policy", name)
    return policies.build(option.pop("name"), module=option.pop("module", None), **option)


def trace_help(options: Options, name: str) -> str:
    """Describe a trace, and the value and meaning of each option of its generator or reader."""
    trace = options.compose(trace=name)["trace"]
    function, defaults = traces.source(trace)
    means = _meanings(inspect.getdoc(function) or "")
    source = "synth" if "synth" in trace else "format"
    lines = [f"trace={name}  {options.summary('trace', name)}", f"  trace.{source}={trace[source]}"]
    lines += [f"  trace.{key}={_shown(trace[key])}" for key in _COMMON if key in trace]
    lines += [
        _parameter("trace", key, trace.get(key, default), means, type_hints(function))
        for key, default in defaults.items()
    ]
    return "\n".join([*lines, ""])


def metric_lines() -> list[str]:
    """List the metrics of every simulation with their meanings."""
    from sim.metrics import METRICS  # a sixth of a second, for its kernels

    lines = [f"  {name:<{_width(METRICS)}}  {m.meaning}" for name, m in METRICS.items()]
    return ["metrics of every simulation (evaluators add others)", *lines, ""]


def transform_lines() -> list[str]:
    """List the transforms of traces with the first line of their documentation."""
    from sim import transforms  # as above

    names = transforms.names()
    docs = {name: inspect.getdoc(getattr(transforms, name)) or "" for name in names}
    return [
        "transforms of a trace (+trace.transforms.NAME.KEY=VALUE)",
        *(wrapped(f"  {n:<{_width(names)}}  ", doc.partition("\n")[0]) for n, doc in docs.items()),
        "",
    ]


def wrapped(head: str, text: str) -> str:
    """Wrap a text beside its head."""
    return textwrap.fill(
        text, LINE, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    )


_COMMON = ("path", "begin_s", "end_s", "transforms")


def _parameter(
    group: str, key: str, value: object, means: Mapping[str, str], hints: Mapping[str, Any]
) -> str:
    meaning = f"{means.get(key, '')} ({describe_type(hints[key])})".lstrip()
    if isinstance(value, Mapping) and value:
        entries = ", ".join(f"{name}={_shown(entry)}" for name, entry in value.items())
        return wrapped(f"  {group}.{key}.NAME=VALUE  ", f"{meaning}: {entries}")
    return wrapped(f"  {group}.{key}={_shown(value)}  ", meaning)


def _shown(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    if value == GIVEN:
        return "FILE"
    return "null" if value is None else value


def _meanings(text: str) -> dict[str, str]:
    """Return the description of each parameter of a function, from its docstring."""
    section = text.partition("\nParameters\n")[2]
    entry = r"^([\w*][\w*, ]*)(?: : .*)?\n((?:    .+\n?)+)"
    return {
        name: " ".join(words.split())
        for names, words in re.findall(entry, section, re.MULTILINE)
        for name in names.split(", ")
    }


def _width(names: Any) -> int:
    return max(map(len, names), default=0)
