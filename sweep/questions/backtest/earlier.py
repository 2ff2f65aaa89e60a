"""Earlier backtests of the same log: the distance between its baseline and what happened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sweep.grid.config_tree import canonical
from sweep.questions.backtest.findings import MAX_HEAD_COULD_START
from sweep.questions.backtest.runs import BACKTEST_JSON
from sweep.report.section import Section
from sweep.store.folder import SweepFolder

MAX_POLICIES = 4
"""Maximum number of policies in a sentence."""


@dataclass(frozen=True)
class KnownError:
    """Error of a policy on a log, as a backtest found it."""

    policy: str  # label in this sweep
    error: float  # of its mean wait, as a fraction of the recorded one
    is_in_order: bool  # a policy that serves one pool in order can have made the log
    backtest: str  # id of the sweep

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
    errors = {}
    for source in provenance.get("inputs", ()):
        matches = [_error(records, source.get("digest"), *item) for item in policies.items()]
        errors[source["trace"]] = [error for error in matches if error is not None]
    return {trace: known for trace, known in errors.items() if known}


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


def _error(
    records: Sequence[tuple[str, Mapping[str, Any]]],
    digest: str | None,
    label: str,
    policy: Mapping[str, Any],
) -> KnownError | None:
    parameters = canonical(json.loads(canonical(policy)))
    for sweep, record in reversed(records):
        if record.get("workload") != digest:
            continue
        for entry in record["policies"]:
            if canonical(entry["policy"]) == parameters and entry["error"] is not None:
                share = record["audit"]["head_could_start"]
                return KnownError(label, entry["error"], share <= MAX_HEAD_COULD_START, sweep)
    return None


def sentence(errors: Sequence[KnownError]) -> str:
    """Write how far policies were from what happened.

    >>> sentence([KnownError("easy", -0.04, True, "backtest-1")])
    'On this log, easy was 4 % off (backtest-1).'
    """
    parts = [f"{known.policy} was {_percent(known.error)} off" for known in errors[:MAX_POLICIES]]
    ids = ", ".join(dict.fromkeys(known.backtest for known in errors[:MAX_POLICIES]))
    text = f"On this log, {', '.join(parts)} ({ids})"
    if not all(known.is_in_order for known in errors):
        text += "; no policy that serves one pool in the order of submission can have made it"
    return f"{text}."


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
