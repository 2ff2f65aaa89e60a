"""Run of a sweep here, or in a batch job of a cluster that has no Ray of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from sim.base import interrupt
from sim.base.errors import InputError
from sweep.driver import run_sweep
from sweep.driver.run_sweep import Outcome, prepare_first
from sweep.execution import notes
from sweep.execution.cell import Simulate
from sweep.execution.on_slurm import batch_job
from sweep.grid import overrides, remote_results
from sweep.grid.request import Request
from sweep.store import sync
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal


def run(
    request: Request,
    simulate: Simulate | None = None,
    on_answer: Callable[[Outcome], object] = lambda _: None,
) -> Outcome:
    """Run a sweep to its end, as `sweep.driver.run_sweep.run`.

    With ``launcher=slurm`` its cells run in a job; this process follows it, and then answers.

    Raises
    ------
    InputError
        If the job can't be submitted, or ended before the sweep did.
    """
    settings = request.settings
    if settings.launcher["kind"] != "slurm":
        return run_sweep.run(request, simulate, on_answer)
    run_sweep.check_writable(settings.results)
    prepared = prepare_first(request)
    folder = SweepFolder.for_sweep(settings.results, prepared.sweep)
    journal = Journal(settings.results, prepared.sweep)
    n_todo = len(prepared.missing_rows())
    if not n_todo and journal.is_complete():
        inline = dataclasses.replace(settings, launcher={"kind": "inline"})
        return run_sweep.run(dataclasses.replace(request, settings=inline), simulate, on_answer)
    notes.grid(prepared, n_todo)
    job = batch_job.find_or_submit(settings.launcher, _words(request), settings.results)
    code = batch_job.follow(job)
    interrupt.set_line(interrupt.LINE)
    sync.fetch(settings.results)  # from an object store, if they are kept there
    if not (journal.is_complete() and folder.path.is_dir()):
        raise InputError(
            f"job {job.number} ended with exit code {code} before the sweep did: {job.stem}.err "
            "says why, and the same command goes on from the cells that are stored",
            rule="job ended",
        )
    return run_sweep.answer(folder, journal, settings, on_answer)


def _words(request: Request) -> list[str]:
    """Return the command line that runs a request in the job, without launcher and tracking."""
    settings = request.settings
    address = remote_results.address_for(settings.results) or str(settings.results)
    options = {
        "paths.results": address,
        "max_failures": settings.max_failures,
        "cell_timeout_s": settings.cell_timeout_s,
    }
    folders = [f"--config-dir={folder}" for folder in request.options.user_dirs]
    return [*request.words, *(overrides.quote(*item) for item in options.items()), *folders]
