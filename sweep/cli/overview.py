"""What ``python -m sweep --help`` says: first what a newcomer wants, the rest by topic."""

from __future__ import annotations

import argparse
import dataclasses
import textwrap
from collections.abc import Callable, Sequence

import policies
from policies.base import meanings
from sim.base.errors import InputError, unknown
from sim.base.parameters import describe_type as words_of
from sim.base.parameters import type_hints
from sweep.cli.command import add_grid_flags
from sweep.cli.verbs import TOPICS, VERBS, function_of
from sweep.driver import find_modules
from sweep.grid.options import Options

LINE = 120
"""Longest line, in characters."""

_HEAD = """\
usage: python -m sweep [verb] key=value ... [flags]

Simulate a grid of scheduling policies, cluster capacities, traces and seeds; keep every cell's
result by content; end with a table, a report and MLflow runs. Without a verb and an axis it runs
experiment=demo. The same command again runs only what is missing.
"""
_EXAMPLES = """\
examples
  python -m sweep
  python -m sweep policy=fifo,sjf,las,srpt capacity=0.5,0.75,1.0 seed=range(0,10) baseline=fifo
  python -m sweep policy=fifo,sjf trace=alibaba2018 trace.path=batch_task.csv.gz launcher=inline
"""
_AXES = """\
axes (Hydra's grammar: a,b  range(0,5)  choice(a,b)  glob(*) sweep an axis)
  policy=NAME         how jobs are ordered and placed
  capacity=FRACTION   of the trace's cluster, whose offered load is cluster.load (0.8)
  trace=NAME          what is submitted when
  seed=N              of random choices and of synthesized traces
  GROUP.KEY=VALUE     any parameter of the chosen options: policy.queues=5,10 cluster.load=0.5,0.9

other keys
  baseline=POLICY     what speed-ups are quoted against
  metrics=[A,B]       what the tables show; metrics=all: everything
  verdict.metric=M    what the verdict speaks of
  target.metric=M target.at_most=X (or target.at_least=X) with capacity='interval(LOW,HIGH)'
                      the least capacity that meets it, on whole machines (docs/targets.md)
  search.metric=M (or M,N) search.cells=400 with policy.X='interval(LOW,HIGH)' policy.Y=A,B
                      the parameters that do best, tested on seeds of their own
  name=NAME           what the sweep is called, to be named so later: report NAME
  experiment=NAME     a named grid; the command line wins over it
  max_failures=N      stop after so many failed cells; --fail-fast after the first
  cell_timeout_s=S    end a cell that runs for longer (3600); null for never
  launcher=inline     run in this process; local: on all CPUs (the default); ray: on a cluster
  tracking=none       log nothing to MLflow
  paths.results=DIR   where everything is written (results)
  paths.traces=DIR    where the real traces of experiments lie (traces)
  --config-dir DIR    a folder of your own options: DIR/policy/mine.yaml
"""
_END = """\
more help
  python -m sweep VERB --help             of a verb
  python -m sweep --help policy=NAME      which parameters a policy has
  python -m sweep --help policies         all policies, ablations of published ones too
  python -m sweep --help TOPIC            TOPIC: {topics}
  python -m sweep completion bash         a script: Tab completes all this (zsh and fish too)

exit codes: 0 all cells done; 1 some failed; 2 configuration or input is wrong; 130 interrupted"""

_TITLES = {
    "policy": "policy=",
    "trace": "trace=",
    "cluster": "cluster= (the simulated one; each trace names its own)",
    "evaluator": "evaluator= (what a cell does)",
    "experiment": "experiment=",
    "launcher": "launcher= (where cells run)",
    "tracking": "tracking=",
}
_GROUPS = {
    "policies": ("policy",),
    "traces": ("trace",),
    "clusters": ("cluster",),
    "evaluators": ("evaluator",),
    "experiments": ("experiment",),
    "all": tuple(_TITLES),
}


def overview(words: Sequence[str] = ()) -> str:
    """Build the text: examples, verbs, axes, policies and traces to begin with.

    With a topic among the words: every option of it. With ``policy=NAME,...``: the parameters of
    those policies.
    """
    flags = argparse.ArgumentParser(add_help=False)
    add_grid_flags(flags)
    known, rest = flags.parse_known_args(list(words))
    options = Options.from_folders(known.config_dir)
    asked = [word.removeprefix("policy=") for word in rest if word.startswith("policy=")]
    if asked:
        find_modules(options)
        return "\n".join(_of_policy(options, name) for name in ",".join(asked).split(","))
    topics = [word for word in rest if not word.startswith("-") and "=" not in word]
    for topic in topics:
        if topic not in TOPICS:
            raise InputError(unknown("topic of --help", topic, TOPICS), rule="unknown topic")
    if topics:
        groups = dict.fromkeys(group for topic in topics for group in _GROUPS[topic])
        return "\n".join(line for group in groups for line in _listed(options, group, _all))
    return "\n".join([*_first(), *_begin_with(options), _END.format(topics=", ".join(TOPICS))])


def _first() -> list[str]:
    width = max(map(len, VERBS))
    lines = [_HEAD, _EXAMPLES, "verbs (anywhere on the line)"]
    lines += [f"  {verb:<{width}}  {_summary(place)}" for verb, place in VERBS.items()]
    return [*lines, "", _AXES]


def _summary(place: str) -> str:
    return (function_of(place).__doc__ or "").strip().splitlines()[0]


def _all(_: str) -> bool:
    return True


def _is_plain(name: str) -> bool:
    """Tell an option from a part left out or replaced of one, and from a paper's experiments."""
    return "/" not in name


def _begin_with(options: Options) -> list[str]:
    return [
        line
        for group in ("policy", "trace", "experiment")
        for line in _listed(options, group, _is_plain)
    ]


def _listed(options: Options, group: str, which: Callable[[str], bool]) -> list[str]:
    """Give an option a line, with what its file says of it."""
    every = options.names(group)
    names = [name for name in every if which(name)]
    width = max(map(len, names), default=0)
    lines = [_wrapped(f"  {name:<{width}}  ", options.summary(group, name)) for name in names]
    if len(names) < len(every):
        topic = next(topic for topic, groups in _GROUPS.items() if group in groups)
        lines.append(f"  and {len(every) - len(names)} more: --help {topic}")
    return [_TITLES[group], *lines, ""]


def _of_policy(options: Options, name: str) -> str:
    """Say what a policy is, and of each parameter the value and what it means."""
    option = options.plain("policy", name)
    policy = policies.build(option.pop("name"), module=option.pop("module", None), **option)
    means, hints = meanings(type(policy)), type_hints(type(policy))
    lines = [f"policy={name}  {options.summary('policy', name)}"]
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        shown = list(value) if isinstance(value, tuple) else value
        head = f"  policy.{field.name}={shown}  "
        may_be = words_of(hints[field.name])
        lines.append(_wrapped(head, f"{means.get(field.name, '')} ({may_be})".lstrip()))
    return "\n".join([*lines, ""])


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(
        text, LINE, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    )
