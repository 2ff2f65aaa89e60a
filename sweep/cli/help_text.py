"""What ``python -m sweep --help`` shows, read from the verbs and the configuration."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import sys
import textwrap
from collections.abc import Sequence

import policies
from policies.base import meanings
from sim.base.parameters import hints_of, words
from sweep.cli.command import add_grid_flags, python_path
from sweep.cli.verbs import VERBS
from sweep.grid.options import Options

LINE = 120
"""Longest line, in characters."""

_HEAD = """\
usage: python -m sweep [verb] key=value ... [flags]

Simulate a grid of scheduling policies, cluster capacities, traces and seeds; keep every cell's
result by content; end with a table, a report and MLflow runs. Without a verb and an axis it runs
experiment=demo. The same command again runs only what is missing.
"""
_AXES = """\
axes (Hydra's grammar: a,b  range(0,5)  choice(a,b)  glob(*) sweep an axis)
  policy=NAME         how jobs are ordered and placed
  capacity=FRACTION   of the trace's cluster, whose offered load is cluster.load (0.8)
  trace=NAME          what is submitted when
  seed=N              of random choices and of synthesized traces
  GROUP.KEY=VALUE     any parameter of the chosen options: policy.queues=5,10 cluster.load=0.5,0.9

other keys
  experiment=NAME     a named grid; the command line wins over it
  baseline=POLICY     what speed-ups are quoted against
  metrics=[A,B]       what the tables show
  max_failures=N      stop after so many failed cells; --fail-fast after the first
  paths.results=DIR   where everything is written (results)
  paths.traces=DIR    where the real traces of experiments lie (traces)
  --config-dir DIR    a folder of your own options: DIR/policy/mine.yaml
"""
_EXAMPLES = """\
examples
  python -m sweep
  python -m sweep policy=fifo,sjf,las,srpt capacity=0.5,0.75,1.0 seed=range(0,5) baseline=fifo
  python -m sweep policy=fifo,sjf trace=alibaba2018 trace.path=batch_task.csv.gz launcher=inline

exit codes: 0 all cells done; 1 some failed; 2 the configuration or input is wrong; 130 interrupted
`python -m sweep VERB --help` tells more about a verb, `python -m sweep --help policy=NAME` which
parameters a policy has."""
_GROUPS = {
    "policy": "policy=",
    "trace": "trace=",
    "cluster": "cluster= (the simulated one; each trace names its own)",
    "measure": "measure= (what a cell does)",
    "experiment": "experiment=",
    "launcher": "launcher= (where cells run)",
    "tracking": "tracking=",
}


def overview(words: Sequence[str] = ()) -> str:
    """Build the text: verbs, axes, every option of each group, three examples.

    With ``policy=NAME,...`` among the words: the parameters of those policies in place of all.
    """
    flags = argparse.ArgumentParser(add_help=False)
    add_grid_flags(flags)
    options = Options.of(flags.parse_known_args(list(words))[0].config_dir)
    asked = [word.removeprefix("policy=") for word in words if word.startswith("policy=")]
    if asked:
        sys.path.extend(folder for folder in python_path(options) if folder not in sys.path)
        return "\n".join(_of_policy(options, name) for name in ",".join(asked).split(","))
    parts = [_HEAD, "verbs"]
    for verb in VERBS:
        doc = importlib.import_module(f"sweep.cli.verbs.{verb}").__doc__ or ""
        parts.append(f"  {verb:<8} {doc.strip().splitlines()[0]}")
    parts += ["", _AXES]
    for group, title in _GROUPS.items():
        parts.append(title)
        names = options.names(group)
        width = max(map(len, names), default=0)
        parts += [_wrapped(f"  {name:<{width}}  ", options.summary(group, name)) for name in names]
        parts.append("")
    return "\n".join([*parts, _EXAMPLES])


def _of_policy(options: Options, name: str) -> str:
    """Say what a policy is, and of each parameter the value and what it means."""
    option = options.plain("policy", name)
    policy = policies.build(option.pop("name"), module=option.pop("module", None), **option)
    means, hints = meanings(type(policy)), hints_of(type(policy))
    lines = [f"policy={name}  {options.summary('policy', name)}"]
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        shown = list(value) if isinstance(value, tuple) else value
        head = f"  policy.{field.name}={shown}  "
        may_be = words(hints[field.name])
        lines.append(_wrapped(head, f"{means.get(field.name, '')} ({may_be})".lstrip()))
    return "\n".join([*lines, ""])


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(
        text,
        LINE,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )
