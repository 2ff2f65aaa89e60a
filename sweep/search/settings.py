"""The tables of a search that is over: every setting tried, and which parameters mattered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sweep import stats
from sweep.search.parameters import Case, Searches, Tried
from sweep.search.scores import Scores, gain
from sweep.stats import Paired
from sweep.stats.arrange import AXES, text

IMPORTANCE = pa.schema(
    [
        *((name, pa.string()) for name in ("policy", "trace", "settings")),
        ("capacity", pa.float64()),
        *((name, pa.string()) for name in ("metric", "parameter")),
        ("importance", pa.float64()),
    ]
)

_TRIED = pa.schema(
    [
        *((name, pa.string()) for name in ("policy", "trace", "settings")),
        ("capacity", pa.float64()),
        ("number", pa.int64()),  # in the order proposed; 0 is the default
        ("role", pa.string()),  # ``default``, ``best``, ``front`` or empty
        ("seeds", pa.int64()),  # searched on
        ("values", pa.list_(pa.struct([("parameter", pa.string()), ("value", pa.string())]))),
        ("numbers", pa.list_(pa.float64())),  # values again, NaN of what is no number
        (
            "metrics",
            pa.list_(
                pa.struct(
                    [
                        ("metric", pa.string()),
                        ("mean", pa.float64()),  # over the seeds searched on
                        ("gain", pa.float64()),  # against the default there
                        # the test on fresh seeds: NaN of settings that were not tested
                        *((n, pa.float64()) for n in ("estimate", "low", "high", "p", "p_holm")),
                        ("pairs", pa.int64()),
                    ]
                )
            ),
        ),
        ("keys", pa.list_(pa.string())),  # of its cells
    ]
)
_NOTHING = Paired(np.nan, np.nan, np.nan, np.nan, 0, "")


def table(searches: Searches, scores: Scores) -> pa.Table:
    """Return ``settings.parquet``: a row a setting."""
    rows = [row for case in searches.cases for row in _rows(searches, scores, case)]
    tests = [one for row in rows for one in row["metrics"]]
    adjusted = stats.holm(np.array([one["p"] for one in tests], dtype=np.float64))
    for one, p in zip(tests, adjusted, strict=True):
        one["p_holm"] = float(p)
    return pa.Table.from_pylist(rows, _TRIED)


def importance(searches: Searches) -> pa.Table:
    """Return ``importance.parquet``: how much of a metric's variance each parameter makes."""
    rows = [
        {**_about(case), "metric": metric, "parameter": key.partition(".")[2], "importance": share}
        for case in searches.cases
        for at, metric in enumerate(searches.goal.metrics)
        for key, share in case.proposals.importance(at).items()
    ]
    return pa.Table.from_pylist(rows, IMPORTANCE)


def _rows(searches: Searches, scores: Scores, case: Case) -> list[dict[str, Any]]:
    tested = {tried.number for tried in searches.tested(case)}
    return [_row(searches, scores, case, t, t.number in tested, bool(tested)) for t in case.tried]


def _row(
    searches: Searches, scores: Scores, case: Case, tried: Tried, is_tested: bool, any_tested: bool
) -> dict[str, Any]:
    on = searches.of_search()[: tried.seeds]
    cells = searches.cells(case, tried.values, on)
    fresh = searches.of_test() if is_tested or (any_tested and tried.role == "default") else []
    more = searches.cells(case, tried.values, fresh) if fresh else []
    base = searches.cells(case, case.tried[0].values, fresh) if is_tested else []
    return {
        **_about(case),
        "number": tried.number,
        "role": tried.role,
        "seeds": tried.seeds,
        "values": [
            {"parameter": p.name, "value": text(tried.values[p.key])} for p in case.parameters
        ],
        "numbers": [_number(tried.values[p.key]) for p in case.parameters],
        "metrics": [
            _metric(scores, name, at, tried, (cells, more, base))
            for at, name in enumerate(searches.goal.metrics)
        ],
        "keys": searches.keys([*cells, *more]),
    }


def _metric(
    scores: Scores, name: str, at: int, tried: Tried, cells: tuple[Sequence[Any], ...]
) -> dict[str, Any]:
    own, fresh, base = cells
    values = scores.values(own, name)
    tested = scores.test(name, fresh, base) if base else _NOTHING
    return {
        "metric": name,
        "mean": float(values.mean()) if len(values) else np.nan,
        "gain": gain(name, tried.scores[at]) if tried.scores else np.nan,
        "estimate": tested.estimate,
        "low": tested.low,
        "high": tested.high,
        "p": tested.p,
        "pairs": tested.n,
    }


def _about(case: Case) -> dict[str, Any]:
    labels = case.cell.labels
    others = {k: v for k, v in labels.items() if k not in AXES and not k.startswith("policy.")}
    said = (f"{key}={text(value)}" for key, value in others.items() if value is not None)
    about = {name: labels[name] for name in ("policy", "trace", "capacity")}
    return {**about, "settings": ", ".join(said)}


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else np.nan
