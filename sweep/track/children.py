"""The child run of a cell, or of all seeds of one setting."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sweep.stats.arrange import AXES
from sweep.track.connection import Place
from sweep.track.rows import MAX_TAG, Row, identity

if TYPE_CHECKING:
    from mlflow.entities import Run

KIND, SWEEP, CELL = "kind", "sweep_id", "cell_key"
PARENT, NOTE = "mlflow.parentRunId", "mlflow.note.content"
CONFIG, TRACEBACK = "config.yaml", "traceback.txt"
PAGE = 1000
_INHERITED = ("mlflow.user", "mlflow.source.name", "mlflow.source.type", "mlflow.source.git.commit")


def find_children(
    place: Place, experiment_id: str, sweep_id: str, names: Iterable[str]
) -> dict[tuple[str, ...], list[Run]]:
    """Give the child runs of a sweep by `Row.identity`; more than one only by mischance."""
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in search(
        place, experiment_id, f"tags.{SWEEP} = '{sweep_id}' and tags.{KIND} != 'sweep'"
    ):
        tags = run.data.tags
        params = {name: tags[name] for name in names if name in tags}
        found.setdefault(identity(tags[KIND], tags.get(CELL, ""), params), []).append(run)
    return found


def search(place: Place, experiment_id: str, query: str) -> list[Run]:
    """Give all active runs that match, oldest first."""
    runs: list[Run] = []
    token = None
    while True:
        page = place.client.search_runs(
            [experiment_id],
            query,
            max_results=PAGE,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        runs += page
        token = page.token
        if not token:
            return runs


def is_up_to_date(place: Place, row: Row, runs: Sequence[Run] | None) -> bool:
    """Tell whether the cell is logged as it is; metrics that changed are logged on the spot.

    A metric changes with its cell's key the same when the baseline's cell, which had failed, is
    done.
    """
    if not runs or len(runs) > 1 or runs[0].info.status != row.run_status:
        return False
    run = runs[0]
    if any(run.data.tags.get(name) != text for name, text in row.error.items()):
        return False
    logged = run.data.metrics
    changed = {
        name: value
        for name, value in row.metrics.items()
        if name not in logged or not math.isclose(logged[name], value, rel_tol=1e-12)
    }
    if changed:
        _log_batch(place, run, changed, {}, time.time())
    return True


def log_child(
    place: Place,
    parent: Run,
    row: Row,
    params: Iterable[str],
    config: str,
    times_s: tuple[float, float],
) -> None:
    """Log a row whole. The run is marked finished last: one cut off before is logged anew."""
    began_s, ended_s = times_s
    axes = {name: row.params[name] for name in AXES if name in row.params}
    others = {name: value for name, value in row.params.items() if name not in AXES}
    tags = {
        PARENT: parent.info.run_id,
        KIND: row.kind,
        SWEEP: parent.data.tags[SWEEP],
        CELL: row.key,
        "status": "failed" if row.is_failed else "done",
        **axes,
        **{name: value[:MAX_TAG] for name, value in others.items()},
        **row.error,
        **{name: parent.data.tags[name] for name in _INHERITED if name in parent.data.tags},
    }
    if row.is_failed:
        tags[NOTE] = _note(row)
    client = place.client
    run = client.create_run(
        parent.info.experiment_id,
        start_time=round(began_s * 1000),
        tags=tags,
        run_name=row.name,
    )
    place.put_text(run, CONFIG, config)
    if row.traceback:
        place.put_text(run, TRACEBACK, row.traceback)
    compared = {name: row.params[name] for name in params if name in row.params}
    _log_batch(place, run, row.metrics, compared, ended_s)
    client.set_terminated(run.info.run_id, row.run_status, end_time=round(ended_s * 1000))


def _log_batch(
    place: Place, run: Run, metrics: Mapping[str, float], params: Mapping[str, str], at_s: float
) -> None:
    from mlflow.entities import Metric, Param

    place.client.log_batch(
        run.info.run_id,
        metrics=[Metric(name, value, round(at_s * 1000), 0) for name, value in metrics.items()],
        params=[Param(name, value) for name, value in params.items()],
    )


def _note(row: Row) -> str:
    """Describe a failure, as Markdown, for the head of the run's page."""
    words = [row.error[name] for name in ("error_type", "error_message") if name in row.error]
    lines = [f"**{': '.join(words)}**", f"    {row.reproduce}"]
    return "\n\n".join(lines)[:MAX_TAG]
