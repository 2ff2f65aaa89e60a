"""Verb ``reproduce``: run experiments that have a study, and write a page for each.

``scale=gallery`` runs them with fewer seeds or smaller workloads, as the experiment states.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sim.base import files
from sim.base.errors import InputError, unknown
from sweep import driver
from sweep.cli import outcome
from sweep.cli.command import Command, add_grid_flags
from sweep.execution.notes import note
from sweep.grid.options import Options
from sweep.grid.request import is_run_setting
from sweep.questions.papers import gallery, ledger, pages
from sweep.questions.papers.gallery import Gallery
from sweep.questions.papers.judgement import JudgedExperiment
from sweep.questions.papers.losses import Losses
from sweep.questions.papers.pages import PageTable, Study
from sweep.store.folder import TABLE, SweepFolder

FOLDER = "reproductions"
Studies = dict[str, Study]
SCALES = ("paper", "gallery")
"""Experiments in full, or reduced by their key ``gallery``."""


def reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [EXPERIMENT ...] [key=value ...] [flags]"
    add_grid_flags(parser)
    parser.add_argument(
        "--list",
        action="store_true",
        help="run nothing; write the pages from their tables, and their list",
    )
    parser.add_argument(
        "--again",
        default="",
        metavar="REASON",
        help="judge a page that was judged before once more, on fresh seeds: why",
    )


def reproduce(command: Command) -> int:
    """Run published experiments (all by default); write our numbers beside the source's."""
    options = Options.from_folders(command.flags.config_dir)
    overrides, scale = _scale(command.overrides)
    known = studies(options)
    if command.flags.list:
        folder = command.results() / FOLDER
        for name in known:
            _write_page(folder, name, known)
        print(_write_list(folder, known))
        return 0
    for name in command.names:
        if name not in known:
            options.check("experiment", name)
            raise InputError(f"experiment={name} has no study; these have: {', '.join(known)}")
    code = 0
    for name in command.names or known:
        words = [f"experiment={name}", *_reduction(known[name], overrides, scale), *overrides]
        try:
            code = max(code, _reproduce(name, words, command, options))
        except InputError as error:
            if command.names:
                raise
            note(f"{name}: {error}")  # go on with the others
            code = 2
    return code


def _reproduce(name: str, words: list[str], command: Command, options: Options) -> int:
    """Run an experiment and write its page; enter its judgement into the ledger."""
    request = driver.make_request(
        words, command.flags.config_dir, fail_fast=command.flags.fail_fast
    )
    judged = _judged(name, words, options)
    if judged:
        path = request.settings.results / ledger.NAME
        judged.check(path, request.axes["seed"], request.axes["trace"])
    sweep, failed = outcome.run(request)
    if sweep.folder.findings() is None:
        return max(failed, 1)
    if judged and not failed:
        stored = PageTable.from_sweep(sweep.folder)
        judged.enter(path, stored, request.axes["seed"], command.flags.again)
    _write(name, sweep.folder, studies(options))
    return failed


def _judged(name: str, words: Sequence[str], options: Options) -> JudgedExperiment | None:
    """Return the experiment if it is judged, and run as its file states it."""
    judged = JudgedExperiment.read(name, options)
    changed = [word for word in words[1:] if not is_run_setting(word.partition("=")[0])]
    if judged is None:
        return None
    reason = " ".join(changed)
    if judged.root is None:
        reason = "no git repository, which tells when the rule was committed"
    if reason:
        note(f"{name}: not entered into the ledger of judgements, because of {reason}")
        return None
    return judged


def _scale(overrides: Sequence[str]) -> tuple[list[str], str]:
    """Return the overrides without the scale, and the scale."""
    named = [word.partition("=")[2] for word in overrides if word.startswith("scale=")]
    for scale in named:
        if scale not in SCALES:
            raise InputError(unknown("scale", scale, SCALES), rule="range")
    rest = [word for word in overrides if not word.startswith("scale=")]
    return rest, named[-1] if named else SCALES[0]


def _reduction(study: Study, overrides: Sequence[str], scale: str) -> list[str]:
    """Return the words that reduce an experiment to the scale, but for keys in `overrides`."""
    if scale != "gallery":
        return []
    keys = {word.partition("=")[0] for word in overrides}
    return [word for word in study.gallery if word.partition("=")[0] not in keys]


def _write(name: str, sweep: SweepFolder, known: Studies) -> None:
    """Write the table of a sweep, and the page from it."""
    folder = sweep.results / FOLDER
    files.write_text(folder / pages.table_name(name, "json"), PageTable.from_sweep(sweep).to_json())
    if title := known[name].table:
        text = f"# {name}\n\n{title}.\n\n{sweep.text(TABLE)}"
        files.write_text(folder / pages.table_name(name, "md"), text)
    _write_page(folder, name, known)
    _write_list(folder, known)
    print(folder / pages.file_name(name))


def _write_page(folder: Path, name: str, known: Studies) -> None:
    """Write the page of an experiment from its table, if there is one."""
    if page := Gallery(folder, known).page(name):
        files.write_text(folder / pages.file_name(name), page)


def _write_list(folder: Path, known: Studies) -> Path:
    path = folder / gallery.NAME
    files.write_text(path, Gallery(folder, known).index())
    return path


def studies(options: Options) -> dict[str, Study]:
    """Return the experiments that have a study, by name."""
    experiments = {name: options.plain("experiment", name) for name in options.names("experiment")}
    about = {name: text["study"] for name, text in experiments.items() if text.get("study")}
    return {
        name: Study(
            options.summary("experiment", name),
            study["source"],
            tuple(experiments[name].get("gallery") or ()),
            study.get("notes", ""),
            study.get("table", ""),
            study.get("name", ""),
            Losses.read(name, about),
        )
        for name, study in about.items()
    }
