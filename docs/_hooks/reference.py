"""Reference pages, generated from the code and from ``conf`` at each build of the site."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

os.environ.update(COLUMNS="96", NO_COLOR="1")  # width of help texts
import policies
import policies.wing.lineage.files
import sim.cli.main
import sim.evaluators
import sim.metrics
import sim.synth
import sim.traces
import sim.workload.schema
import sweep.cli.main
from policies.base import meanings
from sim.base.parameters import describe_type, type_hints
from sweep.cli import verbs
from sweep.cli.overview import overview
from sweep.grid.options import Options, bundled
from sweep.stats.metric_format import sort_metrics, style

OPTIONS = Options()


def pages() -> dict[str, str]:
    """Generate the text of every reference page, by its path in the site."""
    return {uri: make() for uri, make in PAGES.items()}


def _commands() -> str:
    text = overview()
    head = text.partition("\npolicy=\n")[0]
    exits = text[text.rindex("\nmore help\n") :]
    parts = ["# Commands", "", "## python -m sweep", "", *_fenced("text", head + "\n" + exits)]
    parts += ["", "The options of each group are on the next pages."]
    for verb in verbs.names():
        text = sweep.cli.main.parser(verb).format_help()
        parts += ["", f"### python -m sweep {verb}", "", *_fenced("text", text)]
    top = sim.cli.main.parser()
    parts += ["", "## python -m sim", "", *_fenced("text", top.format_help())]
    for verb, parser in _subparsers(top).items():
        parts += ["", f"### python -m sim {verb}", "", *_fenced("text", parser.format_help())]
    return _page(parts)


def _subparsers(parser: Any) -> dict[str, Any]:
    return parser._subparsers._group_actions[0].choices


def _configuration() -> str:
    parts = ["# Configuration", "", "The defaults, as they stand in"]
    parts += ["`conf/`. Any key can be given on the command line: `cluster.load=0.9`.", ""]
    parts += _fenced("yaml", (bundled() / "config.yaml").read_text(encoding="utf-8"))
    for group, description in (
        ("cluster", "The simulated cluster; each trace names its own."),
        ("launcher", "The executor of the sweep's cells."),
        ("tracking", "Where runs are logged."),
    ):
        parts += ["", f"## {group}", "", description]
        for name in OPTIONS.names(group):
            parts += ["", f"### {group}={name}", "", *_yaml(group, name)]
    return _page(parts)


def _policies() -> str:
    parts = ["# Policies", "", "Every option with its class; below, each class with its source"]
    parts += ["and its parameters. [Knowledge](../glossary.md) is true, declared by the user, or"]
    parts += ["learnt.", ""]
    parts += ["| `policy=` | description | knows | class |", "| --- | --- | --- | --- |"]
    for name in OPTIONS.names("policy"):
        policy = policies.build(**OPTIONS.plain("policy", name))
        cls = type(policy)
        path = f"{cls.__module__}.{cls.__qualname__}"
        link = f"[`{cls.__qualname__}`][{path}]"
        parts.append(
            f"| `{name}` | {_cell(OPTIONS.summary('policy', name))} | {policy.knows} | {link} |"
        )
    named: dict[type[policies.Policy], list[str]] = {}
    for name in policies.names():
        named.setdefault(policies.spec(name), []).append(name)
    for cls, names in named.items():
        if not cls.__module__.startswith("policies."):
            continue
        path, title = f"{cls.__module__}.{cls.__qualname__}", ", ".join(names)
        parts += ["", f"::: {path}", *_settings(members="false", heading=title, toc_label=title)]
        parts += ["", f"Class `{path}`."]
        means, hints = meanings(cls), type_hints(cls)
        rows = [
            f"| `{field.name}` | `{_default(field)}` | {_cell(describe_type(hints[field.name]))} | "
            f"{_cell(means.get(field.name, ''))} |"
            for field in dataclasses.fields(cls)
        ]
        head = ["| parameter | default | may be | meaning |", "| --- | --- | --- | --- |"]
        parts += ["", *head, *rows]
    return _page(parts)


def _default(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return factory() if callable(factory) else field.default


def _traces() -> str:
    parts = ["# Traces", "", *_options("trace"), ""]
    parts += ["## Readers of real traces", "", "`format:` in a trace's YAML names one."]
    for name in sim.traces.names():
        parts += ["", *_named(name, f"{sim.traces.FORMATS.module(name).__name__}.read")]
    parts += ["", "## Generators", "", "`synth:` in a trace's YAML names one."]
    for name in sim.synth.names():
        parts += ["", *_named(name, f"{sim.synth.GENERATORS.module(name).__name__}.synthesize")]
    return _page(parts)


def _metrics() -> str:
    parts = ["# Metrics", "", "Fractions are shown times 100. How each is computed stands below."]
    known = sim.metrics.METRICS
    family = ""
    for name in sort_metrics([*sim.metrics.names(), "utilization_cpu"]):
        how = style(name)
        if how.family != family:
            family = how.family
            parts += ["", f"## {family}", "", "| metric | unit | better | meaning |"]
            parts.append("| --- | --- | --- | --- |")
        shown = "utilization_<resource>" if name not in known else name
        meaning = how.meaning.replace("of cpu", "of that resource")
        unit = {"seconds": "s", "percent": "%", "ratio": "×", "index": "0 to 1"}.get(how.kind, "1")
        parts.append(f"| `{shown}` | {unit} | {how.better} | {_cell(meaning)} |")
    parts += ["", "## How they are computed", "", *_object("sim.metrics", "compute")]
    for family in sim.metrics.FAMILIES.names():
        parts += ["", *_object(f"sim.metrics.{family}", "compute")]
    parts += ["", *_object("sim.metrics", "speedups")]
    return _page(parts)


def _evaluators() -> str:
    parts = ["# Evaluators", "", "What a cell computes and stores. The default simulates."]
    parts += ["", *_options("evaluator"), "", "## Each of them"]
    for name in sim.evaluators.names():
        parts += ["", *_named(name, f"{sim.evaluators.EVALUATORS.module(name).__name__}.evaluate")]
    return _page(parts)


def _experiments() -> str:
    parts = ["# Experiments", "", "Named grids: `python -m sweep experiment=NAME`.", ""]
    return _page([*parts, *_options("experiment")])


def _python() -> str:
    names = ("Workload", "Cluster", "simulate", "Result", "lower_bound", "read_trace")
    parts = ["# From Python", "", "Sweeps: [from Python](../python.md) shows how.", ""]
    for name in ("run", "load"):
        parts += ["", *_object("sweep.api", name)]
    for name in ("Sweep", "Cell"):
        parts += ["", *_object("sweep.api", name, "members")]
    parts += ["", "## Single runs", "", "`import sim, policies` is all that a script needs."]
    for name in (*names, "synthesize"):
        parts += ["", *_object("sim", name, "members")]
    parts += ["", "## Tables of a workload", "", *_workload_tables()]
    parts += ["", "## Errors", ""]
    for name in ("SimError", "InputError", "PolicyError", "DeadlockError"):
        parts += [*_object("sim", name), ""]
    return _page(parts)


def _workload_tables() -> list[str]:
    head = (sim.workload.schema.__doc__ or "").partition("\n\n")[2].strip()
    return [head, *_tables({**sim.workload.schema.TABLES, **sim.workload.schema.OPTIONAL_TABLES})]


def _lineage_logs() -> str:
    text = [(policies.wing.lineage.files.__doc__ or "").partition("\n\n")[2].strip(), ""]
    text += ["[Dependencies between jobs](../lineage.md) shows their use. A column without a"]
    text += ["default is required."]
    text += ["", "## Their columns"]
    return _page(["# Logs of lineage", "", *text, *_tables(policies.wing.lineage.files.TABLES)])


def _tables(tables: Mapping[str, Iterable[sim.workload.schema.Column]]) -> list[str]:
    lines: list[str] = []
    for name, columns in tables.items():
        lines += ["", f"### {name}", "", "| column | type | unit | default | meaning |"]
        lines.append("| --- | --- | --- | --- | --- |")
        for column in columns:
            default = (
                "" if column.default is sim.workload.schema.REQUIRED else f"`{column.default!r}`"
            )
            kind = "category" if column.type == sim.workload.schema.CATEGORY else str(column.type)
            words = (f"`{column.name}`", f"`{kind}`", column.unit, default, column.meaning)
            lines.append(f"| {' | '.join(map(_cell, words))} |")
    return lines


def _writing() -> str:
    parts = [
        "# Writing a policy",
        "",
        "The policy protocol, the arrays that it reads and the plan that it fills.",
    ]
    parts += ["[Your own policy](../your_own_policy.md) shows how.", ""]
    for name in ("Policy", "register", "build", "names", "spec"):
        parts += [*_object("policies", name, "members"), ""]
    for name in ("World", "Batch", "Event", "Plan", "Queues", "Order", "Fit", "Share"):
        parts += [*_object("sim.engine.plan", name, "members"), ""]
    return _page([*parts, *_object("sim.engine.plan.queues", "Packing", "members")])


def _options(group: str) -> list[str]:
    rows = [
        f"| `{name}` | {_cell(OPTIONS.summary(group, name))} |" for name in OPTIONS.names(group)
    ]
    return [f"| `{group}=` | description |", "| --- | --- |", *rows]


def _object(module: str, name: str, *parts: str) -> list[str]:
    return [f"::: {module}.{name}", *(() if "members" in parts else _settings(members="false"))]


def _named(name: str, path: str) -> list[str]:
    """Show an object under the name by which configurations know it."""
    return [
        f"::: {path}",
        *_settings(members="false", heading=name, toc_label=name, heading_level="3"),
    ]


def _settings(**options: str) -> list[str]:
    return ["    options:", *(f"      {key}: {value}" for key, value in options.items())]


def _yaml(group: str, name: str) -> list[str]:
    return _fenced("yaml", OPTIONS.files[group][name].read_text(encoding="utf-8"))


def _fenced(language: str, text: str) -> list[str]:
    return [f"```{language}", text.strip("\n"), "```"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(lines: Iterable[str]) -> str:
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": _commands,
    "reference/configuration.md": _configuration,
    "reference/policies.md": _policies,
    "reference/traces.md": _traces,
    "reference/lineage_logs.md": _lineage_logs,
    "reference/metrics.md": _metrics,
    "reference/evaluators.md": _evaluators,
    "reference/experiments.md": _experiments,
    "reference/python.md": _python,
    "reference/writing_policies.md": _writing,
}
"""Generator of each page, in the order of the navigation."""
