"""Plug-in of published experiments: their studies, checked before a run and computed after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sweep.grid.request import Request
from sweep.store.folder import FINDINGS

if TYPE_CHECKING:
    import pyarrow as pa

    from sweep.store.cache import Cache

ORDER = 30
TABLES = (FINDINGS,)


def check(request: Request) -> None:
    """Refuse an experiment whose study does not exist."""
    if request.study is None or request.experiment is None:
        return
    from sweep.questions.papers import studies  # brings those of all systems

    studies.check(request.study, request.options.files["experiment"][request.experiment])


def tables(
    parts: Callable[[], Iterable[pa.Table]], config: Mapping[str, Any], cache: Cache
) -> dict[str, pa.Table | None]:
    """Run the experiment's study on the cells; its table is None without one, or if it fails.

    A study may fail on other cells than those of its experiment. That is reported and affects
    nothing else.
    """
    # these bring the report and the studies
    from sweep.execution import notes
    from sweep.questions.papers import studies
    from sweep.report import findings
    from sweep.report.findings import FinishedSweep

    study = config["study"]
    if study is None:
        return {FINDINGS: None}
    cells = (row for part in parts() for row in part.to_pylist())
    done = [row for row in cells if row["status"] != "failed"]
    try:
        figures = findings.to_table(studies.find(study, FinishedSweep(done, config, cache)))
    except Exception as error:
        name = study.get("name") or f"of {config['experiment']}"
        notes.note(f"study {name} failed: {type(error).__name__}: {error}")
        return {FINDINGS: None}
    return {FINDINGS: figures}
