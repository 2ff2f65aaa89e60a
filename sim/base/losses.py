"""Losses of a log in sentences: the shares of its work that are left out, and changed.

They are read from a reader's account (`sim.base.reading.account`), as plain data: a sweep tells of
them without loading what reads logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

KINDS: Final[Mapping[str, str]] = {
    "cpu_s": "CPU time",
    "gpu_s": "GPU time",
    "tokens_s": "token time",
    "mem_gib_s": "memory × time",
    "jobs": "jobs",
    "tasks": "tasks",
    "edges": "dependencies",
}
"""Kinds of amounts, and their words."""
WORK: Final = ("cpu_s", "gpu_s", "tokens_s")
"""Kinds whose shares decide how loudly a loss is told."""
NEGLIGIBLE: Final = 5e-4
"""Share of an amount below which a change is not told: less than 0.1 %, as it is printed."""
MAX_RULES: Final = 3
"""Number of rules that a sentence names."""


def kind_of(resource: str) -> str:
    """Return the kind of a resource's amounts: over time, of memory in GiB."""
    return "mem_gib_s" if resource == "mem" else f"{resource}_s"


def left_out_share(account: Mapping[str, Mapping[str, Any]], *, with_wasted: bool = True) -> float:
    """Return the largest share of the log's work that is left out, without what options leave out.

    Work is CPU and GPU time (`WORK`); without either it is the share of jobs. Without `with_wasted`
    work does not count that the cluster did in vain.
    """
    kinds = [kind for kind in WORK if account.get(kind, {}).get("log")] or ["jobs"]
    expected = ("by_option",) if with_wasted else ("by_option", "wasted")
    return max(
        max(_share(entry, "left_out") - sum(_share(entry, key) for key in expected), 0.0)
        for entry in (account.get(kind, {}) for kind in kinds)
    )


def changed_share(account: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the largest share of the log's work that a reader adds or takes away.

    By rounding, by defaults, and where a log contradicts itself.
    """
    shares = (_share(account[kind], "changed") for kind in WORK if kind in account)
    return max((abs(share) for share in shares), default=0.0)


def sentence(
    name: str, account: Mapping[str, Mapping[str, Any]], examples: Mapping[str, str]
) -> str:
    """Say in one line which shares of a log are not in its workload; empty if none is missing.

    `examples` has the first bad row by rule (`sim.base.reading.BadRows`).
    """
    parts = [_loss(kind, account[kind], examples) for kind in WORK if kind in account]
    parts = [part for part in parts if part] or [_count_loss(account, examples)]
    parts += [_change(kind, account[kind]) for kind in WORK if kind in account]
    parts += [_plain_loss(kind, account[kind]) for kind in ("edges",) if kind in account]
    text = "; ".join(filter(None, parts))
    return f"{name}: {text}" if text else ""


def _loss(kind: str, entry: Mapping[str, Any], examples: Mapping[str, str]) -> str:
    if not entry["left_out"] > NEGLIGIBLE * entry["log"]:
        return ""
    share = _percent(entry["left_out"] / entry["log"])
    unknown = entry.get("unknown", 0)
    more = f"; {_rows(unknown)} more without a known amount" if unknown else ""
    rules = _rules(entry["left_out_by"], entry["log"], examples)
    return f"{share} of the log's {KINDS.get(kind, kind)} is left out: {rules}{more}"


def _count_loss(account: Mapping[str, Mapping[str, Any]], examples: Mapping[str, str]) -> str:
    """Say how many jobs are left out, if no work is."""
    entry = account.get("jobs", {})
    if not entry.get("left_out"):
        return ""
    ranked = _ranked(entry["left_out_by"])
    rules = [_with_example(f"{rule} ({n:,.0f})", rule, examples) for rule, n in ranked if n]
    more = [f"{len(rules) - MAX_RULES} more rules"] if len(rules) > MAX_RULES else []
    n_log = f"{entry['log']:,.0f}"
    unknown = max((account[kind].get("unknown", 0) for kind in WORK if kind in account), default=0)
    work = "of work that can't be read" if unknown else "without any work"
    return (
        f"{entry['left_out']:,.0f} of the log's {n_log} records are left out, {work}: "
        f"{', '.join([*rules[:MAX_RULES], *more])}"
    )


def _plain_loss(kind: str, entry: Mapping[str, Any]) -> str:
    if not entry["left_out"]:
        return ""
    rules = ", ".join(f"{rule} ({n:,.0f})" for rule, n in _ranked(entry["left_out_by"]))
    return f"{entry['left_out']:,.0f} of {entry['log']:,.0f} {KINDS[kind]} are left out: {rules}"


def _change(kind: str, entry: Mapping[str, Any]) -> str:
    if not abs(entry["changed"]) > NEGLIGIBLE * entry["log"]:
        return ""
    verb = "takes away" if entry["changed"] > 0 else "adds"
    share = _percent(abs(entry["changed"]) / entry["log"]) if entry["log"] else "all"
    rules = ", ".join(rule for rule, _ in _ranked(entry["changed_by"]))
    return f"the reader {verb} {share} of {KINDS.get(kind, kind)}: {rules}"


def _rules(by_rule: Mapping[str, float], log: float, examples: Mapping[str, str]) -> str:
    ranked = _ranked(by_rule)
    shown = [
        _with_example(f"{rule} ({_percent(amount / log)})", rule, examples)
        for rule, amount in ranked
        if amount > 0
    ]
    more = [f"{len(shown) - MAX_RULES} more rules"] if len(shown) > MAX_RULES else []
    return ", ".join([*shown[:MAX_RULES], *more])


def _ranked(by_rule: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return rules and amounts, the largest first; JSON does not keep the order of rules."""
    return sorted(by_rule.items(), key=lambda item: (-abs(item[1]), item[0]))


def _with_example(text: str, rule: str, examples: Mapping[str, str]) -> str:
    return f"{text[:-1]}; {examples[rule]})" if rule in examples else text


def _share(entry: Mapping[str, Any], key: str) -> float:
    log = float(entry.get("log", 0.0))
    return float(entry.get(key, 0.0)) / log if log else 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _rows(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"
