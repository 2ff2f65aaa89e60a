"""Trust in what a simulation on a log says: the verdict of the log's backtest, in one sentence.

A what-if, a target or a search on the log of a real system looks like a forecast. It is none where
the simulation does not give what the log shows, or was never held against it; then its answer
begins with that.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sim.workload.log_facts import LOG
from sweep.grid.cluster_size import stretches
from sweep.questions.backtest.earlier import KnownError, errors_of_trace, listed
from sweep.questions.backtest.group_sentences import farthest
from sweep.questions.backtest.group_sentences import listed as listed_groups
from sweep.questions.backtest.runs import BACKTEST_GROUPS, STEPS_TABLE
from sweep.questions.backtest.step_sentences import share_found
from sweep.store.folder import SweepFolder

MAX_ERROR = 0.1
"""Error of the mean wait above which no forecast stands behind an answer."""
MIN_SHARE = 0.01
"""Share of the wait from which on its reasons are told."""
MUCH = 0.1
"""Share of the wait before jobs were eligible from which on it is told."""
NONE = "No forecast stands behind this answer"
_AUDIT = "by its audit, no policy that serves one pool in order"
_OF_BACKTEST = ("trace", "+trace", "policy", "+policy.", "cluster.", "+cluster.")
"""Words of a request that its backtest takes, too, by how they begin."""


@dataclass(frozen=True)
class Trust:
    """Trust in an answer on one log.

    Attributes
    ----------
    backtest_error : float, optional
        Error of the mean wait of the policy that was farthest off, as a fraction of the recorded
        one; None without a backtest.
    sentence : str
        Verdict of the backtest, or that there is none.
    cautions : tuple of str
        Where the backtest was off, and what the log shows that the simulation lacks, a sentence
        each.
    """

    backtest_error: float | None
    sentence: str
    cautions: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All sentences, the verdict first."""
        return (self.sentence, *self.cautions)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``answer.json`` and of ``verdict.json``."""
        return {
            "backtest_error": self.backtest_error,
            "sentence": self.sentence,
            "cautions": [*self.cautions],
        }


def find_trust(
    results: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]
) -> dict[str, Trust]:
    """Find the trust in a sweep's answer, by trace; for traces that no real system made, none.

    Parameters
    ----------
    results : Path
        Folder of all results.
    config, provenance : mapping
        The sweep's ``config.yaml`` and ``provenance.json``.
    """
    if not is_forecast(config):
        return {}
    logs: dict[str, Mapping[str, Any]] = {}
    for source in provenance.get("inputs") or ():
        if facts := (source.get("meta") or {}).get(LOG):
            logs.setdefault(str(source["trace"]), facts)
    return {trace: _trust(results, config, provenance, trace, logs[trace]) for trace in logs}


def is_forecast(config: Mapping[str, Any]) -> bool:
    """Tell whether a sweep asks what would be: a what-if, a target or a search."""
    return bool(config.get("what_if") or config.get("goal")) and not config.get("backtest")


def recorded_trust(verdict: Sequence[Mapping[str, Any]], field: str) -> dict[str, Trust]:
    """Read the trust by trace from a field of a recorded verdict."""
    return {
        str(entry["trace"]): Trust(
            entry[field]["backtest_error"],
            entry[field]["sentence"],
            tuple(entry[field]["cautions"]),
        )
        for entry in verdict
        if entry.get(field)
    }


def joined(trust: Mapping[str, Trust]) -> Trust | None:
    """Join the trust in several traces, each with its name; None for none.

    Its error is the largest; None if one of them has no backtest.
    """
    if len(trust) < 2:
        return next(iter(trust.values()), None)
    errors = [entry.backtest_error for entry in trust.values()]
    known = [error for error in errors if error is not None]
    return Trust(
        max(known, key=abs) if len(known) == len(errors) else None,
        " ".join(f"{trace}: {entry.sentence}" for trace, entry in trust.items()),
        tuple(f"{trace}: {line}" for trace, entry in trust.items() for line in entry.cautions),
    )


def _trust(
    results: Path,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    trace: str,
    facts: Mapping[str, Any],
) -> Trust:
    cluster = (config.get("cluster") or {}).get(trace) or {}
    is_changed = bool(config.get("bootstrap")) or stretches(cluster)
    errors, other_cluster = errors_of_trace(
        results, config, provenance, trace, by_reading=is_changed
    )
    known = [error for error in errors.values() if error is not None]
    unknown = [label for label, error in errors.items() if error is None]
    worst = max(known, key=lambda error: abs(error.error), default=None)
    cautions = _cautions(cluster, facts)
    if worst is not None and abs(worst.error) <= MAX_ERROR:
        cautions = (*_details(results, worst), *cautions)
    if worst is None:
        sentence = f"{NONE}: no backtest has held {_names(unknown)} against this log"
        return Trust(None, f"{sentence} ({_command(config)}).", cautions)
    if other_cluster:
        cautions = (
            f"The backtest was {other_cluster}, and today's cluster here is another one: give "
            "cluster.count and cluster.shape as there.",
            *cautions,
        )
    return Trust(worst.error, _verdict(known, unknown, worst), cautions)


def _verdict(known: Sequence[KnownError], unknown: Sequence[str], worst: KnownError) -> str:
    """Write the verdict of the backtests of some policies."""
    off = f"on this log, {listed(known)}"
    lacking = f"; no backtest has held {_names(unknown)} against it" if unknown else ""
    in_order = all(error.is_in_order for error in known)
    if abs(worst.error) > MAX_ERROR:
        order = "" if in_order else f"; {_AUDIT} can have made it"
        return f"{NONE}: {off}{order}{lacking}."
    if not in_order:
        return f"{NONE}: {off}, which may be chance: {_AUDIT} can have made it{lacking}."
    return f"Held against the log: {off}{lacking}."


def _details(results: Path, worst: KnownError) -> Iterator[str]:
    """Write what the backtest that counts found beside its mean wait: single starts, and groups."""
    folder = SweepFolder(results / "sweeps" / worst.backtest)
    try:
        steps, groups = folder.table(STEPS_TABLE), folder.table(BACKTEST_GROUPS)
    except (InputError, OSError):
        return  # damaged, or being written
    for row in [] if steps is None else steps.to_pylist():
        if row["policy"] == worst.label and not (row["without"] or row["partition"]):
            yield f"In that backtest, {share_found(row)}."
    rows = [] if groups is None else groups.to_pylist()
    above = max(MAX_ERROR, abs(worst.error))
    if far := farthest([row for row in rows if row["policy"] == worst.label], above):
        yield f"The mean wait of some groups was farther off: {listed_groups(far)}."


def _cautions(cluster: Mapping[str, Any], facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Write what the log shows and the simulated cluster lacks."""
    lines = []
    shape = cluster.get("shape")
    kinds = shape if isinstance(shape, list) else [shape]
    has_partitions = any(isinstance(kind, Mapping) and kind.get("partitions") for kind in kinds)
    if facts.get("partitions") and not has_partitions:
        lines.append(
            f"The log's partitions had different nodes ({facts['partitions']}): they are simulated "
            "as one cluster."
        )
    if facts.get("reasons") and facts.get("reasons_share", 0.0) >= MIN_SHARE:
        limits = "" if cluster.get("limits") else "; no limit is simulated (cluster.limits)"
        lines.append(f"{facts['reasons']}{limits}.")
    if (share := facts.get("before_eligible", 0.0)) >= MUCH:
        lines.append(
            f"{100 * share:.0f} % of the log's wait was before jobs were free to start "
            "(dependencies, throttles of arrays, begin times, holds)."
        )
    return tuple(lines)


def _command(config: Mapping[str, Any]) -> str:
    """Write the command of the backtest that is missing."""
    words = [word for word in config.get("words") or () if word.startswith(_OF_BACKTEST)]
    words = [word for word in words if not word.startswith("cluster.load")]
    words = [f"--config-dir={folder}" for folder in config.get("config_dirs") or ()] + words
    return f"python -m sweep backtest {shlex.join(words)}".rstrip()


def _names(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
