"""Tables of a finished parameter search: settings tried, and importance of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sweep import stats
from sweep.execution.cell_results import CellResults
from sweep.grid.cell_factory import settings_text
from sweep.grid.grid import Cell
from sweep.questions.search.files import IMPORTANCE, SETTINGS
from sweep.questions.search.proposals import Case
from sweep.questions.search.scores import Scores, gain
from sweep.questions.search.space import Values
from sweep.stats import Paired
from sweep.stats.cell_columns import AXES, text

_ABOUT = {"policy": pa.string(), "trace": pa.string(), "settings": pa.string()}
_ABOUT |= {"capacity": pa.float64()}
_MATTERED = pa.schema(
    _ABOUT | {"metric": pa.string(), "parameter": pa.string(), "importance": pa.float64()}
)
_VALUE = {"parameter": pa.string(), "value": pa.string()}
_METRIC = {
    "metric": pa.string(),
    "mean": pa.float64(),  # over the seeds searched on
    "gain": pa.float64(),  # against the default there
    # the test on fresh seeds: NaN of settings that were not tested
    **dict.fromkeys(("estimate", "low", "high", "p", "p_holm"), pa.float64()),
    "pairs": pa.int64(),
}
_TRIED = pa.schema(
    _ABOUT
    | {
        "number": pa.int64(),  # in the order proposed; 0 is the default
        "role": pa.string(),  # ``default``, ``best``, ``front`` or empty
        "seeds": pa.int64(),  # searched on
        "values": pa.list_(pa.struct(_VALUE)),
        "numbers": pa.list_(pa.float64()),  # values again, NaN of what is no number
        "metrics": pa.list_(pa.struct(_METRIC)),
        "keys": pa.list_(pa.string()),  # of its cells
    }
)
_NOTHING = Paired(np.nan, np.nan, np.nan, np.nan, 0, "")


CellsOf = Callable[[Case, Values, Sequence[int]], list[Cell]]
"""Function that returns the cells of a setting, a seed each."""


def tables(
    cases: Sequence[Case],
    metrics: Sequence[str],
    search_seeds: Sequence[int],
    test_seeds: Sequence[int],
    cells_of: CellsOf,
    results: CellResults,
) -> dict[str, pa.Table]:
    """Return ``settings.parquet``, a row a setting, and ``importance.parquet``.

    The latter has each parameter's share of a metric's variance. `search_seeds` are those of the
    search, `test_seeds` those that only the default and the best run on.
    """
    inputs = metrics, search_seeds, test_seeds, cells_of, results
    rows = [row for case in cases for row in _rows(case, *inputs)]
    tests = [test for row in rows for test in row["metrics"]]
    adjusted = stats.holm(np.array([test["p"] for test in tests], dtype=np.float64))
    for test, p in zip(tests, adjusted, strict=True):
        test["p_holm"] = float(p)
    mattered = [
        {**_labels(case), "metric": metric, "parameter": key.partition(".")[2], "importance": share}
        for case in cases
        for index, metric in enumerate(metrics)
        for key, share in case.proposals.importance(index).items()
    ]
    return {
        SETTINGS: pa.Table.from_pylist(rows, _TRIED),
        IMPORTANCE: pa.Table.from_pylist(mattered, _MATTERED),
    }


def _rows(
    case: Case,
    metrics: Sequence[str],
    search_seeds: Sequence[int],
    test_seeds: Sequence[int],
    cells_of: CellsOf,
    results: CellResults,
) -> Iterator[dict[str, Any]]:
    scores = Scores(results, metrics)
    tested = {tried.number for tried in case.tested}
    for tried in case.tried:
        is_default = bool(tested) and tried.role == "default"
        fresh = test_seeds if is_default or tried.number in tested else ()
        search_cells = cells_of(case, tried.values, search_seeds[: tried.seeds])
        test_cells = cells_of(case, tried.values, fresh)
        default_cells = cells_of(case, case.tried[0].values, () if is_default else fresh)
        yield {
            **_labels(case),
            "number": tried.number,
            "role": tried.role,
            "seeds": tried.seeds,
            "values": [
                {"parameter": p.name, "value": text(tried.values[p.key])} for p in case.parameters
            ],
            "numbers": [_number(tried.values[p.key]) for p in case.parameters],
            "metrics": [
                _metric(
                    scores,
                    name,
                    tried.scores[index : index + 1],
                    search_cells,
                    test_cells,
                    default_cells,
                )
                for index, name in enumerate(metrics)
            ],
            "keys": [results.key(cell) for cell in (*search_cells, *test_cells)],
        }


def _metric(
    scores: Scores,
    name: str,
    score: Sequence[float],
    search_cells: Sequence[Cell],
    test_cells: Sequence[Cell],
    default_cells: Sequence[Cell],
) -> dict[str, Any]:
    tested = scores.test(name, test_cells, default_cells) if default_cells else _NOTHING
    return {
        "metric": name,
        "mean": float(scores.values(search_cells, name).mean()) if search_cells else np.nan,
        "gain": gain(name, score[0]) if score else np.nan,
        "pairs": tested.n,
        **{end: getattr(tested, end) for end in ("estimate", "low", "high", "p")},
    }


def _labels(case: Case) -> dict[str, Any]:
    labels = case.cell.labels
    exclude = [*AXES, *(key for key in labels if key.startswith("policy."))]
    shown = {name: labels[name] for name in ("policy", "trace", "capacity")}
    return {**shown, "settings": settings_text(labels, exclude)}


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else np.nan
