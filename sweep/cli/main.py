"""``python -m sweep``: find the verb, run it, turn what happened into an exit code; the help."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import importlib
import io
import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import policies
from policies.base import meanings
from sim.base.errors import InputError, unknown
from sim.base.parameters import hints_of
from sim.base.parameters import words as words_of
from sweep.cli.command import Parser, add_grid_flags, split
from sweep.driver import find_modules
from sweep.grid.options import Options

VERBS = {
    **dict.fromkeys(("run", "plan"), "run"),
    **dict.fromkeys(("status", "show"), "show"),
    **{"retry": "run", "report": "show", "verify": "run", "track": "run", "reproduce": "reproduce"},
}
"""In which module beside this one each verb is.

A verb is a function of its name, ``verb(command) -> exit code``, whose docstring ``--help`` shows,
the first line in the overview; ``verb_arguments(parser)`` beside it adds its flags. It raises
`InputError` for what is wrong.
"""

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
_NO_ROOM = (
    "; make room, or move the results folder and name it with paths.results=DIR: "
    "what is done is kept, and the same command goes on from here"
)
_READ_ONLY = "; name a folder that can be written to with paths.results=DIR"
_WAY_OUT = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EFBIG: _NO_ROOM,
    errno.EROFS: _READ_ONLY,
}

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
  cell_timeout_s=S    end a cell that runs for longer (3600); null for never
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


def main(argv: Sequence[str]) -> int:
    """Run a command line."""
    signal.signal(signal.SIGTERM, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # no sign of ours is worth a traceback
    try:
        return _main(list(argv))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # whoever read our output has enough; nothing can be said to them any more
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
        return DONE
    except OSError as error:
        print(f"error: {error}{_WAY_OUT.get(error.errno or 0, '')}", file=sys.stderr)
        return WRONG


def _main(argv: list[str]) -> int:
    name = "run"
    if argv and not argv[0].startswith(("-", "+", "~")) and "=" not in argv[0]:
        name = argv.pop(0)
    elif {"-h", "--help"} & set(argv):
        name = "help"
    if name == "help":
        print(overview(argv))
        return DONE
    if name not in VERBS:
        hint = "axes are given as policy=fifo,sjf"
        raise InputError(f"{unknown('verb', name, VERBS)}; {hint}", rule="unknown verb")
    code: int = _verb(name)(split(parser(name), argv))
    return code


def parser(name: str) -> Parser:
    """Build the parser of a verb."""
    made = Parser(
        prog=f"python -m sweep {name}",
        usage=f"python -m sweep {name} [key=value ...] [flags]",
        description=_verb(name).__doc__,
        allow_abbrev=False,
    )
    _verb(f"{name}_arguments", of=name)(made)
    return made


def _verb(function: str, of: str | None = None) -> Any:
    """Find a verb's function, or that which adds its flags."""
    module = VERBS[of or function]
    return getattr(importlib.import_module(f"sweep.cli.{module}"), function)


def overview(words: Sequence[str] = ()) -> str:
    """Build the text: verbs, axes, every option of each group, three examples.

    With ``policy=NAME,...`` among the words: the parameters of those policies in place of all.
    """
    flags = argparse.ArgumentParser(add_help=False)
    add_grid_flags(flags)
    options = Options.of(flags.parse_known_args(list(words))[0].config_dir)
    asked = [word.removeprefix("policy=") for word in words if word.startswith("policy=")]
    if asked:
        find_modules(options)
        return "\n".join(_of_policy(options, name) for name in ",".join(asked).split(","))
    parts = [_HEAD, "verbs"]
    for verb in VERBS:
        doc = _verb(verb).__doc__ or ""
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
        may_be = words_of(hints[field.name])
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


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
