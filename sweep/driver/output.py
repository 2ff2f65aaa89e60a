"""Folder of a finished sweep: tables, report, provenance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sim.base.errors import InputError, did_you_mean
from sweep import report
from sweep.execution import cells_table, notes, origin
from sweep.execution.cell_metrics import Flags
from sweep.execution.memory import return_memory
from sweep.execution.plan import PreparedGrid
from sweep.questions.backtest import earlier
from sweep.questions.backtest import section as backtest_section
from sweep.questions.backtest.earlier import KnownError
from sweep.questions.papers import studies
from sweep.questions.search import equal_capacity, sections
from sweep.report import findings
from sweep.report.findings import FinishedSweep
from sweep.report.section import Section
from sweep.stats import done_jobs, reading
from sweep.stats.cell_columns import chosen_metrics, table_options
from sweep.stats.summary import summarise
from sweep.store.cache import Cache
from sweep.store.cell import CellError
from sweep.store.folder import DONE_JOBS, EQUAL, FINDINGS, VERDICT, SweepFolder

BACKTESTS = "backtests"
"""Key of ``verdict.json``: what earlier backtests of the log found."""


@dataclass(frozen=True)
class Outcome:
    """Result of a finished sweep."""

    folder: SweepFolder
    cells: pa.Table  # ``cells.parquet``, narrow; see `sweep.execution.cells_table`
    config: Mapping[str, Any]  # ``config.yaml``
    n_failed: int
    is_tracked: bool = True  # False: it should be in MLflow and is not


def write_folder(
    prepared: PreparedGrid,
    folder: SweepFolder,
    cached: Sequence[bool] | Flags,
    errors: Mapping[str, CellError],
    confirm: Callable[[], None],
) -> Outcome:
    """Write the sweep's folder, ``cells.parquet`` last, as it marks the folder as complete.

    `confirm` raises if another process has taken over; nothing is written from then on.
    """
    return_memory()
    cells = cells_table.narrow(prepared, errors, cached)
    return_memory()
    config = origin.config_record(prepared)
    check_metrics(cells, config)
    confirm()
    provenance = folder.replace_origin(config, *origin.provenance_record(prepared))
    write_cells(prepared, folder, cells, config, provenance, confirm)
    return Outcome(folder, cells, config, len(errors))


def check_metrics(cells: pa.Table, config: Mapping[str, Any]) -> None:
    """Refuse a name in ``metrics=`` that no finished cell has.

    What an evaluator of a user's own returns is known only now; its cells are cached already.
    """
    missing = [name for name in chosen_metrics(config) if name not in cells.column_names]
    if not missing or set(cells["status"].unique().to_pylist()) <= {"failed"}:
        return
    computed = summarise(cells, **table_options(config)).metrics
    raise InputError(
        f"metrics={missing[0]}: no cell has this metric; {did_you_mean(missing[0], computed)}"
        f"computed: {', '.join(computed)}. Return it from the evaluator, or leave it out of "
        "metrics=; finished cells are cached",
        rule="unknown metric",
    )


def write_cells(
    prepared: PreparedGrid,
    folder: SweepFolder,
    cells: pa.Table,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    confirm: Callable[[], None],
) -> None:
    """Write the tables and the report of cells, ``cells.parquet`` last."""
    with folder.replacing_cells(cells_table.parts(prepared, cells)):
        return_memory()
        folder.replace(DONE_JOBS, _done_jobs(cells, config, prepared.cache))
        folder.replace(FINDINGS, find(cells_table.parts(prepared, cells), config, prepared.cache))
        write_report(folder, cells, config, provenance, cache=prepared.cache)
        confirm()


def _done_jobs(cells: pa.Table, config: Mapping[str, Any], cache: Cache) -> pa.Table | None:
    def jobs_of(key: str) -> pa.Table | None:
        result = cache.get(key)
        return None if result is None else result.jobs

    return done_jobs.table(cells, config["swept"], config["baseline"], jobs_of)


def write_report(
    folder: SweepFolder,
    cells: pa.Table,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    *,
    known: Mapping[str, Sequence[KnownError]] | None = None,
    **options: Any,
) -> None:
    """Write the report; answers of a search come before the tables (`sweep.report.write_all`).

    `known` are the errors of earlier backtests of its logs; None looks for them in its results.
    """
    folder.replace(EQUAL, equal_capacity.table(cells, config))
    table = sections.shown_cells(cells, config, folder)
    answers = build_sections(folder, config, provenance)
    if known is None:
        known = earlier.known_errors(folder.results, config, provenance)
    if known and any(section.is_answer for section in answers):
        answers.append(earlier.section(known))
    remarks = {trace: earlier.sentence(errors) for trace, errors in known.items()}
    options |= {"sections": answers, "remarks": remarks}
    report.write_all(folder, table, config, provenance, **options)
    sections.add_answers(folder, answers)
    if known:
        folder.replace_json(VERDICT, [_with_errors(entry, known) for entry in folder.verdict()])


def build_sections(
    folder: SweepFolder, config: Mapping[str, Any], provenance: Mapping[str, Any]
) -> list[Section]:
    """Build the sections of a backtest and of searches, for terminal and report."""
    built = [
        *backtest_section.build_sections(folder),
        *sections.build_sections(folder, config),
    ]
    logs = reading.readings(config, provenance)
    return [
        dataclasses.replace(s, sentences=tuple(reading.with_caveats(s.sentences, logs)))
        if s.is_answer
        else s
        for s in built
    ]


def add_backtests(folder: SweepFolder, cells: pa.Table, config: Mapping[str, Any]) -> None:
    """Write the report of a finished sweep again if its log has another backtest by now."""
    provenance = folder.provenance()
    known = earlier.known_errors(folder.results, config, provenance)
    entries = folder.verdict()
    if [_with_errors(entry, known) for entry in entries] != entries:
        write_report(folder, cells, config, provenance)
        folder.commit()


def _with_errors(
    entry: Mapping[str, Any], known: Mapping[str, Sequence[KnownError]]
) -> dict[str, Any]:
    """Return an entry of ``verdict.json`` with the errors that backtests found on its log."""
    errors = [error.to_json() for error in known.get(entry["trace"], ())]
    without_errors = {key: value for key, value in entry.items() if key != BACKTESTS}
    return without_errors | ({BACKTESTS: errors} if errors else {})


def find(parts: Iterable[pa.Table], config: Mapping[str, Any], cache: Cache) -> pa.Table | None:
    """Run the experiment's study on the cells; None if there is none, or it fails.

    A study may fail on other cells than those of its experiment. That is reported and affects
    nothing else.
    """
    study = config["study"]
    if study is None:
        return None
    cells = (row for part in parts for row in part.to_pylist())
    done = [row for row in cells if row["status"] != "failed"]
    try:
        return findings.to_table(studies.find(study, FinishedSweep(done, config, cache)))
    except Exception as error:
        name = study.get("name") or f"of {config['experiment']}"
        notes.note(f"study {name} failed: {type(error).__name__}: {error}")
        return None
