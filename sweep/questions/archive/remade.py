"""Files of a sweep made anew from its cells, and compared with those that are recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from sim.base.errors import InputError, summary_line
from sim.base.masking import mask, mask_tree
from sweep.driver import added, output
from sweep.execution import cells_table, origin
from sweep.grid import plugins
from sweep.grid.config_tree import abbreviated, canonical, to_yaml
from sweep.questions.archive.page_jobs import without_jobs
from sweep.questions.archive.replay import Replay
from sweep.report.contribution import Finished
from sweep.stats import done_jobs
from sweep.store import checksums
from sweep.store.cache import Cache
from sweep.store.cell import CellResult
from sweep.store.folder import (
    CELLS,
    CONFIG,
    DONE_JOBS,
    HTML,
    PROVENANCE,
    SweepFolder,
    report_files,
    strategy_files,
)

State = Literal["same", "differs", "not compared"]


@dataclass(frozen=True)
class FileCheck:
    """Outcome of one file."""

    name: str
    state: State
    reason: str = ""  # of a difference, or of no comparison; of the same, what was left out


class _WatchedCache(Cache):
    """A cache that tells whether it was request for a cell."""

    def __init__(self, results: Path) -> None:
        super().__init__(results)
        self.was_asked = False

    def get(self, key: str) -> CellResult | None:
        self.was_asked = True
        return super().get(key)


def compare(
    folder: SweepFolder, replayed: Replay, remade: SweepFolder, modules: Collection[str] | None
) -> Iterator[FileCheck]:
    """Make the files of a sweep anew in the folder `remade`; yield how each that is there compares.

    Parameters
    ----------
    folder : SweepFolder
        The recorded sweep.
    replayed : Replay
        The same, from its words.
    remade : SweepFolder
        An empty folder in results of its own.
    modules : collection of str, optional
        The user's modules that a study may be in; any if None.
    """
    for check in _checks(folder, replayed, remade, modules):
        if check.state != "same" or (folder.path / check.name).exists():
            yield check


def _checks(
    folder: SweepFolder, replayed: Replay, remade: SweepFolder, modules: Collection[str] | None
) -> Iterator[FileCheck]:
    yield _compare_cells(folder, replayed)
    config, was = origin.config_record(replayed.prepared), folder.config()
    with contextlib.suppress(TypeError):  # anything may stand in a foreign file
        if canonical(was) == canonical(config):
            config = was  # its keys may have been in another order
    yield _same_bytes(folder, CONFIG, to_yaml(config).encode())
    remade.path.mkdir(parents=True)
    yield from _compare_strategy_files(folder, replayed, remade)
    yield from _compare_tables(folder, replayed, remade, config, modules)
    yield check_done_jobs(folder, replayed.cells, config)
    _copy(folder, remade, DONE_JOBS)
    output.write_report(Finished(remade, replayed.cells, config, folder.provenance(), folder))
    tables = plugins.constants(plugins.SECTIONS, "TABLES")
    for name in report_files():
        if name not in tables:
            yield _compare_file(folder, remade, name)
    yield _compare_provenance(folder, replayed)
    yield from _from_others(folder)
    named = {CELLS, CONFIG, PROVENANCE, DONE_JOBS, checksums.NAME, *strategy_files()}
    for path in sorted(folder.path.iterdir()):
        if path.name not in named | {*report_files()}:
            yield FileCheck(path.name, "not compared", "it does not follow from cells")


def _compare_strategy_files(
    folder: SweepFolder, replayed: Replay, remade: SweepFolder
) -> Iterator[FileCheck]:
    job_files = plugins.constants(plugins.STRATEGIES, "JOB_FILES")
    for name in strategy_files():
        if name in job_files:
            _copy(folder, remade, name)
            if (folder.path / name).exists():
                yield FileCheck(name, "not compared", "it is made from the jobs of each cell")
        elif name in replayed.from_others:
            _copy(folder, remade, name)
            yield FileCheck(name, "not compared", "its search ran cells that are no rows")
        else:
            remade.replace(name, replayed.tables.get(name))
            yield _compare_file(folder, remade, name)


def _from_others(folder: SweepFolder) -> Iterator[FileCheck]:
    """Name what follows from other sweeps, which are not at hand."""
    fields = {field for entry in folder.verdict() for field in entry if entry[field]}
    for plug_in in plugins.installed(plugins.SECTIONS):
        if fields & {*getattr(plug_in.module, "FIELDS", ())}:
            yield FileCheck(plug_in.module.OTHERS, "not compared", "they are other sweeps'")


def _compare_cells(folder: SweepFolder, replayed: Replay) -> FileCheck:
    """Compare each column of ``cells.parquet`` but the metrics, which cells are run for."""
    keys, begin = 0, 0
    parts = cells_table.parts(replayed.prepared, replayed.cells)
    for old in folder.parts():
        now = next(parts, None)
        if now is None or now.num_rows != old.num_rows:
            return FileCheck(CELLS, "differs", "its row groups are not a sweep's")
        for name in dict.fromkeys([*now.column_names, *old.column_names]):
            kinds = [_type(table, name) for table in (old, now)]
            if kinds[0] != kinds[1]:
                reason = f"its column {name} is {kinds[0]}, and should be {kinds[1]}"
                return FileCheck(CELLS, "differs", reason)
            rows = _rows_that_differ(old[name], now[name])
            if name == "key":
                keys += len(rows)
            elif rows:
                reason = _difference(name, begin + rows[0], old[name], now[name], rows)
                return FileCheck(CELLS, "differs", reason)
        begin += old.num_rows
    compared = "labels and configurations of all rows; metrics of those that were run"
    since = f"; the keys of {keys} rows are of other sources or input" if keys else ""
    return FileCheck(CELLS, "same", compared + since)


def _type(table: pa.Table, name: str) -> str:
    return str(table.schema.field(name).type) if name in table.column_names else "missing"


def _rows_that_differ(old: pa.ChunkedArray, now: pa.ChunkedArray) -> list[int]:
    if old.equals(now):
        return []
    pairs = zip(old.to_pylist(), now.to_pylist(), strict=True)
    return [row for row, (before, after) in enumerate(pairs) if repr(before) != repr(after)]


def _difference(
    name: str, row: int, old: pa.ChunkedArray, now: pa.ChunkedArray, rows: list[int]
) -> str:
    before, after = (_shown(column[rows[0]].as_py()) for column in (old, now))
    more = f"; {len(rows) - 1} more rows" if len(rows) > 1 else ""
    if name == "config":
        return f"the configuration of row {row} is not what its labels name{more}"
    return f"{name} of row {row} is {before}, and should be {after}{more}"


def _shown(value: Any) -> str:
    shown = mask(repr(value))
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def _compare_tables(
    folder: SweepFolder,
    replayed: Replay,
    remade: SweepFolder,
    config: Mapping[str, Any],
    modules: Collection[str] | None,
) -> Iterator[FileCheck]:
    study = config["study"]
    module = None if study is None else study.get("module")
    if module is not None and modules is not None and module not in modules:
        raise InputError(f"its study names the module {module!r}, which it does not bring")
    cache = _WatchedCache(remade.results)
    parts = partial(cells_table.parts, replayed.prepared, replayed.cells)
    added.replace_tables(remade, parts, config, cache)
    for name in plugins.constants(plugins.SECTIONS, "TABLES"):
        if cache.was_asked:
            _copy(folder, remade, name)
            yield FileCheck(name, "not compared", "its study reads the jobs of cells")
        else:
            yield _same_table(folder, remade, name)


def check_done_jobs(folder: SweepFolder, cells: pa.Table, config: Mapping[str, Any]) -> FileCheck:
    """Check of which cells the table of common jobs is; its numbers are of single jobs."""
    table = folder.table(DONE_JOBS)
    if table is None:
        return FileCheck(DONE_JOBS, "same")
    keys = done_jobs.keys(cells, config["swept"], config["baseline"])
    if not {*table[done_jobs.KEY].to_pylist()} <= keys:
        return FileCheck(DONE_JOBS, "differs", "it has cells beside which no job failed")
    return FileCheck(DONE_JOBS, "not compared", "it is made from the jobs of each cell")


def _copy(folder: SweepFolder, remade: SweepFolder, name: str) -> None:
    if not name.endswith(".json"):
        remade.replace(name, folder.table(name))
    elif (record := folder.read_json(name)) is not None:
        remade.replace_json(name, record)


def _same_table(folder: SweepFolder, remade: SweepFolder, name: str) -> FileCheck:
    old, now = folder.table(name), remade.table(name)
    if old is None or now is None:
        return _presence(name, is_here=old is not None, is_made=now is not None)
    if not old.schema.equals(now.schema):
        return FileCheck(name, "differs", "its columns are not those that its cells give")
    if repr(old.to_pylist()) == repr(now.to_pylist()):
        return FileCheck(name, "same")
    return FileCheck(name, "differs", "its cells give other rows")


def _presence(name: str, *, is_here: bool, is_made: bool) -> FileCheck:
    if is_here == is_made:
        return FileCheck(name, "same")
    return FileCheck(name, "differs", "its cells give one" if is_made else "its cells give none")


def _compare_file(folder: SweepFolder, remade: SweepFolder, name: str) -> FileCheck:
    if name.endswith(".parquet"):
        return _same_table(folder, remade, name)
    path = remade.path / name
    if name != HTML:
        return _same_bytes(folder, name, path.read_bytes() if path.exists() else None)
    try:
        (old, n_jobs), (now, _) = map(without_jobs, (folder.text(name), remade.text(name)))
    except (ValueError, IndexError, RecursionError) as error:
        return FileCheck(name, "differs", f"its plots can't be read: {summary_line(error)}")
    if old != now:
        return FileCheck(name, "differs", _first_line(old, now))
    left_out = f"but for {n_jobs} plots of single jobs, which are not compared" if n_jobs else ""
    return FileCheck(name, "same", left_out)


def _same_bytes(folder: SweepFolder, name: str, now: bytes | None) -> FileCheck:
    path = folder.path / name
    old = path.read_bytes() if path.exists() else None
    if old is None or now is None:
        return _presence(name, is_here=old is not None, is_made=now is not None)
    if old == now:
        return FileCheck(name, "same")
    before, after = (content.decode(errors="replace") for content in (old, now))
    return FileCheck(name, "differs", _first_line(before, after))


def _first_line(old: str, now: str) -> str:
    before, after = old.splitlines(), now.splitlines()
    pairs = enumerate(zip(before, after, strict=False), start=1)
    line = next((number for number, (a, b) in pairs if a != b), min(len(before), len(after)) + 1)
    return f"from line {line} on it is not what its cells give"


def _compare_provenance(folder: SweepFolder, replayed: Replay) -> FileCheck:
    """Compare what provenance repeats of the request, and the workloads that were built here."""
    provenance, prepared = folder.provenance(), replayed.prepared
    request = prepared.grid.request
    words = [*request.words, *(f"--config-dir={name}" for name in request.options.recorded_dirs)]
    for key, now in (
        ("command", mask(" ".join(["python -m sweep", *words]))),
        ("seeds", abbreviated(request.axes["seed"])),
    ):
        if provenance.get(key) != now:
            return FileCheck(PROVENANCE, "differs", f"its {key} is not that of {CONFIG}")
    names = {cell.workload: cell.cell.labels["trace"] for cell in prepared.representatives}
    inputs = provenance.get("inputs")
    if not isinstance(inputs, list) or len(inputs) != len(names):
        return FileCheck(PROVENANCE, "differs", "its inputs are not those of its cells")
    n_built = 0
    for (key, trace), old in zip(names.items(), inputs, strict=True):
        known = prepared.inputs.known(key)
        now = mask_tree({"trace": trace, **(known or {})})
        if not isinstance(old, Mapping) or old.get("trace") != now["trace"]:
            return FileCheck(PROVENANCE, "differs", f"it lacks the input of trace {trace}")
        if known is not None and dict(old) != now:
            wrong = next(part for part in {**now, **old} if old.get(part) != now.get(part))
            reason = f"{wrong} of its input {trace} is not that of the trace"
            return FileCheck(PROVENANCE, "differs", reason)
        n_built += known is not None
    compared = f"in command, seeds and {n_built} of {len(names)} inputs"
    return FileCheck(PROVENANCE, "same", f"{compared}; code and machine are as it says")
