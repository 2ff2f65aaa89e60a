"""Text of ``python -m sweep --help``: first what a newcomer needs, the rest by topic."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from sim.base.errors import InputError, unknown
from sweep.cli.command import add_grid_flags
from sweep.cli.option_help import (
    metric_lines,
    policy_help,
    policy_summary,
    trace_help,
    trace_summary,
    transform_lines,
    wrapped,
)
from sweep.cli.verbs import TOPICS, about, names
from sweep.driver import find_modules
from sweep.grid import plugins
from sweep.grid.options import Options

_HEAD = """\
usage: python -m sweep [verb] key=value ... [flags]

Simulate a grid of scheduling policies, cluster capacities, traces and seeds; one combination is
a cell. The result is a
verdict, a table, a report and MLflow runs. Without arguments it runs experiment=demo. Results are
cached: the same command again runs only the cells that are missing.
"""
_EXAMPLES = """\
examples
  python -m sweep
  python -m sweep policy=fifo,sjf,las,srpt capacity=0.5,0.75,1.0 'seed=range(0,10)' baseline=fifo
  python -m sweep policy=fifo,sjf trace=alibaba2018 trace.path=batch_task.csv.gz launcher=inline
"""
_AXES = """\
axes (a,b  'range(0,5)'  'choice(a,b)'  'glob(*)' try several values; Hydra's grammar)
  policy=NAME         scheduling policy: order and placement of jobs
  capacity=FRACTION   size of the cluster; at 1.0 jobs load it to cluster.load (80 %)
  trace=NAME          workload: the jobs and their submission times; a:swf:one.swf names your own
  seed=N              seed of synthesized traces, faults and random choices
  GROUP.KEY=VALUE     any parameter of the chosen options: policy.queues=5,10 cluster.load=0.5,0.9
  what_if.KEY=VALUE   beside today, and what restores today's waits: load=1.3 or load=account=ml:2
                      (more jobs), nodes=+20, limit=long:0.5, qos=normal:MaxTRESPU=none, faster=1.5,
                      without_queue=x, add=TRACE, policy.KEY=VALUE, cluster.KEY=VALUE

other keys
  baseline=POLICY     policy that speed-ups are relative to
  metrics=[A,B]       metrics in the tables; metrics=all: all of them
  metrics.by=KEY      waits of each queue, user, width or value of any column of jobs, too
  seeds=bootstrap     seeds draw a log's weeks, days, hours or users (seeds_block); seeds=auto: as
                      many seeds as narrow intervals need
  cluster.price_per_machine_h=P   what capacities and targets cost a month
  verdict.metric=M    metric of the verdict
{keys}
  name=NAME           name of the sweep, for later commands: report NAME
  question=TEXT       your question in your words, for the head of the report
  experiment=NAME     a named grid; words on the command line override it
  max_failures=N      stop after N failed cells; --fail-fast after the first
  cell_timeout_s=S    end a cell that runs for more than S seconds (3600); null: never
  launcher=inline     run in this process; local: on all CPUs (default); ray: on a Ray cluster;
                      slurm: in a job of Slurm's (launcher.partition=P launcher.nodes=N)
  tracking=none       log nothing to MLflow
  paths.results=DIR   folder for all output (results)
  paths.traces=DIR    folder of the real traces that experiments read (traces)
  --config-dir DIR    a folder of your own options: DIR/policy/mine.yaml
  --cfg job           show the composed configuration (also --info); run nothing
"""
_END = """\
more help
  python -m sweep VERB --help             flags of a verb
  python -m sweep --help policy=NAME      parameters of a policy; trace=NAME: of a trace
  python -m sweep --help policies         all policies, with ablations of published ones
  python -m sweep --help TOPIC            {topics}
  python -m sweep completion bash         script for Tab completion (zsh and fish too)

exit codes: 0 all cells done; 1 some failed; 2 wrong configuration or input; 130 interrupted"""

_TITLES = {
    "policy": "policy= (in brackets: knowledge of durations)",
    "trace": "trace= (in brackets: files that it needs; paths.traces=DIR has the real traces)",
    "cluster": "cluster= (simulated cluster; each trace has a default)",
    "evaluator": "evaluator= (computation and metrics of a cell)",
    "experiment": "experiment=",
    "launcher": "launcher= (processes or Ray cluster that run cells)",
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
_SYNONYMS = {"knobs": "transforms"}
_TEXTS = {"metrics": metric_lines, "transforms": transform_lines}
_SUMMARIES = {"policy": policy_summary, "trace": trace_summary}
_PARAMETERS = {"policy": policy_help, "trace": trace_help}


def overview(words: Sequence[str] = ()) -> str:
    """Build the text: examples, verbs, axes, common policies and traces.

    A topic among the words lists all its options; ``policy=NAME,...`` or ``trace=NAME,...`` the
    parameters of these.
    """
    flags = argparse.ArgumentParser(add_help=False)
    add_grid_flags(flags)
    known, rest = flags.parse_known_args(list(words))
    options = Options.from_folders(known.config_dir)
    chosen = [
        (group, name)
        for group, _, names in (word.partition("=") for word in rest)
        for name in names.split(",")
        if group in _PARAMETERS
    ]
    if chosen:
        find_modules(options)
        return "\n".join(_PARAMETERS[group](options, name) for group, name in chosen)
    for group, _, name in (word.partition("=") for word in rest):
        if group in _TITLES and name:
            raise InputError(
                f"--help {group}={name}: parameters are listed for policy=NAME and trace=NAME; "
                f"--help {_topic(group)} lists each {group}",
                rule="unknown topic",
            )
    rest = [_SYNONYMS.get(word, word) for word in rest]
    topics = [word for word in rest if not word.startswith("-") and "=" not in word]
    for topic in topics:
        if topic not in TOPICS:
            text = unknown("topic of --help", topic, TOPICS)
            having = [group for group in _PARAMETERS if topic in options.names(group)]
            text += "".join(f"; --help {group}={topic} has its parameters" for group in having)
            raise InputError(text, rule="unknown topic")
    if topics:
        lines = [line for topic in topics for line in _TEXTS.get(topic, list)()]
        groups = dict.fromkeys(group for topic in topics for group in _GROUPS.get(topic, ()))
        lines += [line for group in groups for line in _listed(options, group, _all)]
        return "\n".join(lines)
    return "\n".join([*_first(), *_begin_with(options), _END.format(topics=", ".join(TOPICS))])


def _topic(group: str) -> str:
    """Return the topic that lists a group."""
    return next(topic for topic, groups in _GROUPS.items() if group in groups)


def _first() -> list[str]:
    width = max(map(len, names()))
    lines = [_HEAD, _EXAMPLES, "verbs (anywhere on the line)"]
    lines += [f"  {verb:<{width}}  {about(verb).summary}" for verb in names()]
    keys = "\n".join(plugins.constants(plugins.STRATEGIES, "HELP"))
    return [*lines, "", _AXES.replace("{keys}\n", f"{keys}\n" * bool(keys))]


def _all(_: str) -> bool:
    return True


def _is_plain(name: str) -> bool:
    """Tell options from ablations of one and from the experiments of a paper."""
    return "/" not in name


def _begin_with(options: Options) -> list[str]:
    return [
        line
        for group in ("policy", "trace", "experiment")
        for line in _listed(options, group, _is_plain)
    ]


def _listed(options: Options, group: str, shown: Callable[[str], bool]) -> list[str]:
    """Return a line for each option, with the summary in its file."""
    every = options.names(group)
    names = [name for name in every if shown(name)]
    width = max(map(len, names), default=0)
    if group == "policy":
        find_modules(options)
    summaries = [
        _SUMMARIES[group](options, name) if group in _SUMMARIES else options.summary(group, name)
        for name in names
    ]
    lines = [wrapped(f"  {n:<{width}}  ", text) for n, text in zip(names, summaries, strict=True)]
    if len(names) < len(every):
        lines.append(f"  and {len(every) - len(names)} more: --help {_topic(group)}")
    return [_TITLES[group], *lines, ""]
