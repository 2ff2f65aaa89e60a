"""The driver: from words to a sweep's folder; the one writer of cells, tables and reports.

What happens meanwhile is said on standard error (`sweep.execution.notes`); whoever calls shows the
rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sim.base import files
from sim.base.errors import InputError
from sim.base.masking import mask_tree
from sweep import report, track
from sweep.execution import compute, notes, plan, rows, seeds, together
from sweep.execution.cell import Simulate
from sweep.execution.compute import Runner
from sweep.execution.inputs import Inputs
from sweep.execution.known import Flags
from sweep.execution.memory import give_back
from sweep.execution.on_ray.pool import make_runner
from sweep.execution.plan import Prepared
from sweep.grid import elsewhere, grid, overrides, request
from sweep.grid.config_tree import in_short
from sweep.grid.grid import Grid
from sweep.grid.options import Options
from sweep.grid.request import Request, Settings
from sweep.papers import studies
from sweep.report import findings
from sweep.report.findings import Finished
from sweep.search import equal, sections
from sweep.search.settle import Pursuit
from sweep.stats import FIRST_SEEDS
from sweep.store import mirror, place, provenance
from sweep.store.cache import Cache
from sweep.store.cell import CellError
from sweep.store.folder import EQUAL, FINDINGS, SweepFolder
from sweep.store.journal import Journal

_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# Results of cells by content; deleting this folder costs time, nothing else.
"""


ONE_SEED = "no seed changes anything here, as the workload is fixed and no policy draws"


@dataclass(frozen=True)
class Outcome:
    """A sweep that is over."""

    folder: SweepFolder
    cells: pa.Table  # ``cells.parquet``, narrow; see `sweep.execution.rows`
    config: Mapping[str, Any]  # ``config.yaml``
    n_failed: int


def ask(
    overrides: Sequence[str], config_dirs: Sequence[str] = (), *, fail_fast: bool = False
) -> Request:
    """Make a request, with the user's modules found and the experiment's study checked."""
    options = Options.of(config_dirs)
    find_modules(options)
    asked = request.read(overrides, options, fail_fast=fail_fast)
    if asked.study is not None and asked.experiment is not None:
        studies.check(asked.study, options.files["experiment"][asked.experiment], options)
    mirror.fetch(asked.settings.results)
    return asked


def ask_again(
    folder: SweepFolder, words: Sequence[str] = (), *, fail_fast: bool = False
) -> Request:
    """Ask for the grid of a sweep that is over again; `words` say where and how it runs."""
    config = folder.config()
    here = [] if any(word.startswith("paths.results=") for word in words) else [folder.results]
    where = [
        overrides.quote("paths.results", elsewhere.address_of(results) or str(results))
        for results in here
    ]
    return ask([*config["words"], *words, *where], config["config_dirs"], fail_fast=fail_fast)


def find_modules(options: Options) -> None:
    """Let the user's modules be found."""
    sys.path.extend(folder for folder in _python_path(options) if folder not in sys.path)


def _python_path(options: Options) -> list[str]:
    """Folders in which a user's modules may lie: here, the config folders and their parents."""
    folders = [Path.cwd()]
    for folder in options.user_dirs:
        folders += [folder, folder.parent]
    return [str(folder) for folder in dict.fromkeys(folders)]


def run(asked: Request, simulate: Simulate | None = None) -> Outcome:
    """Run a sweep to its end."""
    cells = None if asked.goal is not None else grid.build(asked)
    results = asked.settings.results
    _check_writable(results)
    for part in ("cache", "sweeps", "journal"):
        files.sweep_temporaries(results / part)
    where = asked.settings
    folders = _python_path(asked.options)
    _say_where(where)
    runner = make_runner(where.launcher, folders, simulate, where.cell_timeout_s)
    with contextlib.closing(runner):
        if cells is None:
            return _pursue(Pursuit(asked, runner, lambda: _warm_up(asked.settings)), runner)
        if asked.precision is not None and not cells.is_fixed:
            first = seeds.with_seeds(asked, FIRST_SEEDS)
            asked = seeds.settle(first, runner, lambda: _warm_up(asked.settings))
            cells = grid.build(asked)
        elif asked.precision is not None:
            notes.note(f"{ONE_SEED}: seeds=auto takes one")
            cells = grid.build(seeds.with_seeds(asked, 1))
        return _whole(cells, runner)


def _whole(cells: Grid, runner: Runner) -> Outcome:
    """Run what is not cached, and write the sweep's folder."""
    results = cells.request.settings.results
    inputs = Inputs(results, defers=True, convert=runner.convert)
    prepared = plan.prepare(cells, inputs)
    journal = Journal(results, prepared.sweep)
    waited = False

    def on_wait() -> None:
        nonlocal waited
        waited = True
        notes.note(f"another process runs {prepared.sweep} in {results}; waiting for it")

    with journal.locked(on_wait) as lease:
        if waited:
            mirror.fetch(results)
            inputs = Inputs(results, defers=True, convert=runner.convert)
            prepared = plan.prepare(cells, inputs)
        folder = SweepFolder.of(results, prepared.sweep)
        if not prepared.todo() and folder.is_whole() and journal.is_complete():
            return _again(prepared, folder, journal)
        specs = plan.specs(prepared)
        first = list(itertools.islice(specs, compute.FIRST))
        n_todo = len(prepared.todo())
        cached = compute.begin(prepared, journal, n_todo)
        errors: dict[str, CellError] = {}
        if first:
            if cells.is_fixed and len(cells.request.axes["seed"]) > 1:
                notes.note(f"{ONE_SEED}: seed=0 gives the same as all of these")
            _warm_up(cells.request.settings)
            specs = itertools.chain(together.each_once(first), specs)
            errors = together.run(prepared, specs, n_todo, journal, runner)
            lease.check()
        with ThreadPoolExecutor(1) as aside:  # stopping Ray takes a second or two
            closed = aside.submit(runner.close)
            outcome = _finish(prepared, folder, journal, cached, errors)
            closed.result()
        return outcome


def _pursue(pursuit: Pursuit, runner: Runner) -> Outcome:
    """Look for what was asked for, round by round, and write the sweep's folder."""
    with pursuit.held():
        found = pursuit.settle()
        folder, journal = SweepFolder.of(*pursuit.where), Journal(*pursuit.where)
        if not found.n_run and folder.is_whole() and journal.is_complete():
            return _again(found.prepared, folder, journal)
        with ThreadPoolExecutor(1) as aside:  # stopping Ray takes a second or two
            closed = aside.submit(runner.close)
            for name, table in found.tables.items():
                folder.replace(name, table)
            outcome = _finish(found.prepared, folder, journal, found.cached, found.errors)
            closed.result()
        return outcome


def begin(asked: Request) -> Prepared:
    """Prepare the cells that a request begins with: all of them, unless something is looked for."""
    if asked.goal is not None:
        return Pursuit(asked).begin()
    return plan.prepare(grid.build(asked), Inputs(asked.settings.results, defers=True))


def prepare(asked: Request) -> Prepared:
    """Prepare the cells that a request comes to; of one with a goal those that were run for it."""
    if asked.goal is None:
        return plan.prepare(grid.build(asked), Inputs(asked.settings.results, defers=True))
    pursuit = Pursuit(asked)
    with pursuit.held():
        return pursuit.settle().prepared


def _warm_up(settings: Settings) -> None:
    if settings.tracking["kind"] == "mlflow":
        track.warm_up()


def _finish(
    prepared: Prepared,
    folder: SweepFolder,
    journal: Journal,
    cached: Sequence[bool] | Flags,
    errors: Mapping[str, CellError],
) -> Outcome:
    """Write the sweep's folder, ``cells.parquet`` last as it says that all is there; track it."""
    asked = prepared.grid.request
    give_back()
    cells = rows.narrow(prepared, errors, cached)
    give_back()
    config = _config_of(prepared)
    names = {planned.input: planned.cell.labels["trace"] for planned in prepared.first}
    inputs = [{"trace": name, **(prepared.inputs.known(key) or {})} for key, name in names.items()]
    words = [*asked.words, *(f"--config-dir={user_dir}" for user_dir in asked.options.user_dirs)]
    about, diff = provenance.collect(words, asked.axes["seed"], inputs)
    about = folder.write_origin(config, about, diff)
    with folder.replacing_cells(rows.parts(prepared, cells)):
        give_back()
        folder.replace(FINDINGS, find(rows.parts(prepared, cells), config, prepared.cache))
        write_report(folder, cells, config, about, cache=prepared.cache)
    target = _track(folder, asked.settings)
    journal.append("end", failed=len(errors), tracked=target)
    prepared.cache.compact()
    mirror.push_all(folder.results, folder.path)
    return Outcome(folder, cells, config, len(errors))


def _again(prepared: Prepared, folder: SweepFolder, journal: Journal) -> Outcome:
    """Answer a sweep that is over and of which every cell is cached: only statuses change."""
    settings = prepared.grid.request.settings
    journal.append("asked")
    cells = rows.read(folder)
    if cells["status"].unique().to_pylist() != ["cached"]:
        cells = rows.with_status(cells, "cached")
        with folder.replacing_cells(rows.with_status(part, "cached") for part in folder.parts()):
            pass
    ends = [event for event in journal.milestones() if event["event"] == "end"]
    if not track.is_logged(settings, ends[-1].get("tracked")):
        journal.append("end", failed=0, tracked=_track(folder, settings))
    mirror.push_all(folder.results, folder.path)
    notes.note(f"every cell is cached: all {cells.num_rows} were computed before")
    return Outcome(folder, cells, folder.config(), 0)


def write_report(
    folder: SweepFolder,
    cells: pa.Table,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    **options: Any,
) -> None:
    """Write the report, what was looked for before the tables; see `sweep.report.write_all`."""
    folder.replace(EQUAL, equal.table(cells, config))
    shown = sections.shown(cells, config, folder)
    found = sections.of(folder, config)
    report.write_all(folder, shown, config, provenance, sections=found, **options)
    sections.answer(folder, found)


def find(parts: Iterable[pa.Table], config: Mapping[str, Any], cache: Cache) -> pa.Table | None:
    """Let the experiment's study look at the cells; None if there is none, or it can't.

    A study that fails, as it may on other cells than its experiment has, takes nothing else with
    it: what went wrong is said.
    """
    study = config["study"]
    if study is None:
        return None
    found = (row for part in parts for row in part.to_pylist())
    done = [row for row in found if row["status"] != "failed"]
    try:
        return findings.to_table(studies.find(study, Finished(done, config, cache)))
    except Exception as error:
        name = study.get("name") or f"of {config['experiment']}"
        notes.note(f"study {name} found nothing: {type(error).__name__}: {error}")
        return None


def _config_of(prepared: Prepared) -> dict[str, Any]:
    """Write down what was asked for and what it resolved to, for ``config.yaml``."""
    asked = prepared.grid.request
    options: dict[str, dict[str, Any]] = {"policy": {}, "trace": {}, "cluster": {}, "measure": {}}
    for cell in (planned.cell for planned in prepared.first):
        options["policy"].setdefault(cell.labels["policy"], cell.policy)
        options["trace"].setdefault(cell.labels["trace"], cell.trace)
        options["cluster"].setdefault(cell.labels["trace"], cell.cluster)
        options["measure"].setdefault(cell.measure["name"], cell.measure)
    config: dict[str, Any] = mask_tree(
        {
            "sweep": prepared.sweep,
            "experiment": asked.experiment,
            "study": asked.study,
            "words": list(asked.words),
            "config_dirs": [str(folder) for folder in asked.options.user_dirs],
            "axes": {key: in_short(values) for key, values in asked.axes.items()},
            "swept": list(prepared.grid.swept),
            "fixed": [assignment.text for assignment in asked.fixed],
            "baseline": asked.baseline,
            "metrics": list(asked.metrics),
            "verdict": {"metric": asked.verdict_metric},
            "is_fixed": prepared.grid.is_fixed,
            **options,
        }
    )
    if asked.goal is not None:
        config["goal"] = dataclasses.asdict(asked.goal)
    if asked.precision is not None:
        wanted = dataclasses.asdict(asked.precision)
        config["seeds"] = {"asked": wanted, "found": dict(asked.seeds or {})}
    return config


def _track(folder: SweepFolder, settings: Settings) -> str | None:
    """Log a sweep to where its settings say; return where that is, None if nowhere."""
    target = track.target_of(settings)
    if target is None:
        return None
    try:
        track.log(folder, settings, notes.note)
    except track.TrackingDown as down:
        notes.note(str(down))
        return None
    return target


def _say_where(settings: Settings) -> None:
    """Say what of the results stays on this machine where they lie in an object store."""
    address = elsewhere.address_of(settings.results)
    if address is not None:
        stays = ""
        if settings.tracking["kind"] == "mlflow" and not settings.tracking.get("uri"):
            stays = "; MLflow's database stays on this machine, tracking.uri=URI names another"
        notes.note(f"results go to {elsewhere.shown(address)}, by way of {settings.results}{stays}")


def _check_writable(results: Path) -> None:
    try:
        place.of(results).put("cache/CACHEDIR.TAG", _TAG)
        results.mkdir(parents=True, exist_ok=True)
        files.write_bytes(results / "cache" / "CACHEDIR.TAG", _TAG)
    except OSError as error:
        raise InputError(
            f"results can't be written to {results}: {error.strerror}; give paths.results=DIR",
            rule="results folder",
        ) from error
