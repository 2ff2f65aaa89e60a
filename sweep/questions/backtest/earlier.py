"""Earlier backtests of the same log: the distance between its baseline and what happened."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sweep.grid.config_tree import canonical
from sweep.grid.recipe import AFTER
from sweep.questions.backtest.findings import MAX_HEAD_COULD_START
from sweep.questions.backtest.runs import BACKTEST_JSON
from sweep.report.section import Section
from sweep.store.folder import SweepFolder

_LAGS = ("launch_s", "stage_lag_s")
"""Options of a cluster that a backtest takes from the log."""
MAX_POLICIES = 4
"""Maximum number of policies in a sentence."""


@dataclass(frozen=True)
class KnownError:
    """Error of a policy on a log, as a backtest found it."""

    policy: str  # label in this sweep
    error: float  # of its mean wait, as a fraction of the recorded one
    is_in_order: bool  # such a policy can have made the log, by its order or the cluster's rules
    backtest: str  # id of the sweep
    label: str = ""  # of the policy in that sweep

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``verdict.json``."""
        return asdict(self)


def known_errors(
    results: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]
) -> dict[str, list[KnownError]]:
    """Find the errors of a sweep's policies on its logs, by trace.

    A backtest counts if its workload has the same content and the policy the same parameters; of
    several, the one with the most runs. Only the baseline's error is returned, if the sweep has a
    baseline.

    Parameters
    ----------
    results : Path
        Folder of all results.
    config, provenance : mapping
        The sweep's ``config.yaml`` and ``provenance.json``.
    """
    swept_parameters = any(key.startswith("policy.") for key in config["swept"])
    if config.get("backtest") or swept_parameters:
        return {}
    records = _backtests(results)
    if not records:
        return {}
    policies = config["policy"]
    if config["baseline"] is not None:
        policies = {label: p for label, p in policies.items() if label == config["baseline"]}
    traces = dict.fromkeys(str(source["trace"]) for source in provenance.get("inputs", ()))
    errors = {}
    for trace in traces:
        matching = _same_workload(records, _digests(provenance, trace))
        matches = [_error(matching, *item) for item in policies.items()]
        errors[trace] = [error for error in matches if error is not None]
    return {trace: known for trace, known in errors.items() if known}


def errors_of_trace(
    results: Path,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    trace: str,
    *,
    by_reading: bool = False,
) -> tuple[dict[str, KnownError | None], str]:
    """Find the errors of a sweep's policies on a log, by label; None without a backtest.

    Of a sweep with a baseline only that. Parameters that the sweep varies do not tell policies
    apart here. With `by_reading` a backtest of the log counts that was read in the same way, though
    the sweep's workload is changed: draws of blocks, or stretched arrivals. Backtests on the
    sweep's cluster count first; returned, too, is the cluster of another one that counts, else "".
    """
    policies = config["policy"]
    if config.get("baseline") in policies:
        policies = {config["baseline"]: policies[config["baseline"]]}
    records = _backtests(results)
    matching = _same_workload(records, _digests(provenance, trace))
    if by_reading and not matching:
        reading = _reading((config.get("trace") or {}).get(trace) or {})
        matching = [
            (sweep, record)
            for sweep, record in records
            if reading in map(_reading, _options(results, sweep, "trace"))
        ]
    today = (config.get("cluster") or {}).get(trace) or {}
    clusters_of = {sweep: _options(results, sweep, "cluster") for sweep, _ in matching}
    on_today, with_its_rules = (
        {sweep for sweep, options in clusters_of.items() if part(today) in map(part, options)}
        for part in (_size, _rules)
    )
    matching = sorted(  # the last counts
        matching, key=lambda entry: (entry[0] in on_today, entry[0] in with_its_rules)
    )
    varied = {key.removeprefix("policy.") for key in config["swept"] if key.startswith("policy.")}
    errors = {label: _error(matching, label, policy, varied) for label, policy in policies.items()}
    other_sweeps = {error.backtest for error in errors.values() if error} - on_today
    clusters = [
        str(record.get("cluster", "")) for sweep, record in matching if sweep in other_sweeps
    ]
    return errors, next(iter(clusters), "").partition(", as ")[0]


def recorded_errors(
    verdict: Sequence[Mapping[str, Any]], field: str
) -> dict[str, list[KnownError]]:
    """Read the errors of earlier backtests, by trace, from a field of a recorded verdict."""
    return {
        str(entry["trace"]): [KnownError(**error) for error in entry[field]]
        for entry in verdict
        if entry.get(field)
    }


def _backtests(results: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the readable records of finished backtests, those with the most runs last."""
    records = []
    for file in (results / "sweeps").glob(f"*/{BACKTEST_JSON}"):
        folder = SweepFolder(file.parent)
        try:
            record = folder.read_json(BACKTEST_JSON)
        except (InputError, OSError):
            continue  # damaged, or being written
        if isinstance(record, dict):
            records.append((folder.sweep, record))
    return sorted(records, key=lambda entry: (entry[1].get("runs", 0), entry[0]))


def _digests(provenance: Mapping[str, Any], trace: str) -> set[Any]:
    """Return the digests of a trace's workloads: today's, and those with changes."""
    inputs = provenance.get("inputs") or ()
    return {source.get("digest") for source in inputs if str(source["trace"]) == trace}


def _same_workload(
    records: Sequence[tuple[str, dict[str, Any]]], digests: Collection[Any]
) -> list[tuple[str, dict[str, Any]]]:
    return [(sweep, record) for sweep, record in records if record.get("workload") in digests]


def _options(results: Path, sweep: str, kind: str) -> list[dict[str, Any]]:
    """Return the configurations of a sweep's traces or clusters; none if they can't be read."""
    try:
        config = SweepFolder(results / "sweeps" / sweep).config()
    except (InputError, OSError):
        return []
    return list((config.get(kind) or {}).values())


def _size(cluster: Mapping[str, Any]) -> str:
    """Return shape and number of a cluster's machines, as text."""
    return _text({key: cluster.get(key) for key in ("shape", "count")})


def _rules(cluster: Mapping[str, Any]) -> str:
    """Return all options of a cluster but the lags, which a backtest draws, as text."""
    return _text({key: value for key, value in cluster.items() if key not in _LAGS})


def _text(options: Mapping[str, Any]) -> str:
    return canonical(json.loads(canonical(options)))


def _reading(trace: Mapping[str, Any]) -> str:
    """Return the configuration of a trace without draws of its blocks and later changes."""
    transforms = {k: v for k, v in (trace.get("transforms") or {}).items() if k != "bootstrap"}
    options = {k: v for k, v in trace.items() if k != AFTER and v is not None}
    if options.get("path"):
        options["path"] = str(Path(str(options["path"])).absolute())
    return _text({**options, "transforms": transforms})


def _error(
    records: Sequence[tuple[str, Mapping[str, Any]]],
    label: str,
    policy: Mapping[str, Any],
    varied: Collection[str] = (),
) -> KnownError | None:
    parameters = _without(policy, varied)
    for sweep, record in reversed(records):
        for entry in record["policies"]:
            if _without(entry["policy"], varied) == parameters and entry["error"] is not None:
                share = record["audit"]["head_could_start"]
                in_order = share <= MAX_HEAD_COULD_START or record.get("has_rules", False)
                label_then = entry.get("label", "")
                return KnownError(label, entry["error"], in_order, sweep, label_then)
    return None


def _without(policy: Mapping[str, Any], varied: Collection[str]) -> str:
    """Return a policy's configuration without some parameters, as text."""
    chosen = {k: v for k, v in (policy.get("params") or {}).items() if k not in varied}
    return _text({**policy, "params": chosen})


def sentence(errors: Sequence[KnownError]) -> str:
    """Write how far policies were from what happened.

    >>> sentence([KnownError("easy", -0.04, True, "backtest-1")])
    'On this log, easy was 4 % off (backtest-1).'
    """
    text = f"On this log, {listed(errors)}"
    if not all(known.is_in_order for known in errors):
        text += "; no policy that serves one pool in the order of submission can have made it"
    return f"{text}."


def listed(errors: Sequence[KnownError]) -> str:
    """List policies with their errors, and the backtests that found them."""
    parts = [f"{known.policy} was {_percent(known.error)} off" for known in errors[:MAX_POLICIES]]
    ids = ", ".join(dict.fromkeys(known.backtest for known in errors[:MAX_POLICIES]))
    return f"{', '.join(parts)} ({ids})"


def section(known: Mapping[str, Sequence[KnownError]]) -> Section:
    """Build the report's section of a sweep whose answer is no verdict."""
    lines = tuple(
        f"{trace}: {sentence(errors)}" if len(known) > 1 else sentence(errors)
        for trace, errors in known.items()
    )
    return Section("earlier_backtests", "Held against the log", lines)


def _percent(error: float) -> str:
    percent = 100 * abs(error)
    return f"{percent:,.0f} %" if percent >= 0.95 else f"{percent:.1f} %"
