"""Verb ``reproduce``: run experiments that have a study, and write a page for each.

``scale=gallery`` runs them with fewer seeds or smaller workloads, as the experiment states.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from sim.base import files
from sim.base.errors import InputError, unknown
from sweep import driver
from sweep.cli import outcome
from sweep.cli.command import Command, add_grid_flags
from sweep.execution.notes import note
from sweep.grid.options import Options
from sweep.papers import gallery
from sweep.report import findings
from sweep.store.folder import TABLE, SweepFolder

FOLDER = "reproductions"
SCALES = ("paper", "gallery")
"""Experiments in full, or reduced by their key ``gallery``."""


def reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [EXPERIMENT ...] [key=value ...] [flags]"
    add_grid_flags(parser)
    parser.add_argument("--list", action="store_true", help="run nothing; write the list of pages")


def reproduce(command: Command) -> int:
    """Run published experiments (all by default); write our numbers beside the source's."""
    options = Options.from_folders(command.flags.config_dir)
    overrides, scale = _scale(command.overrides)
    known = studies(options)
    if command.flags.list:
        print(_write_list(command.results() / FOLDER, options))
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
    """Run an experiment and write its page."""
    request = driver.make_request(
        words, command.flags.config_dir, fail_fast=command.flags.fail_fast
    )
    sweep = driver.run(request)
    failed = outcome.show(sweep, request.settings)
    return max(failed, _write(name, sweep.folder, options))


def _scale(overrides: Sequence[str]) -> tuple[list[str], str]:
    """Return the overrides without the scale, and the scale."""
    named = [word.partition("=")[2] for word in overrides if word.startswith("scale=")]
    for scale in named:
        if scale not in SCALES:
            raise InputError(unknown("scale", scale, SCALES), rule="range")
    rest = [word for word in overrides if not word.startswith("scale=")]
    return rest, named[-1] if named else SCALES[0]


def _reduction(study: gallery.Study, overrides: Sequence[str], scale: str) -> list[str]:
    """Return the words that reduce an experiment to the scale, but for keys in `overrides`."""
    if scale != "gallery":
        return []
    keys = {word.partition("=")[0] for word in overrides}
    return [word for word in study.gallery if word.partition("=")[0] not in keys]


def _write(name: str, folder: SweepFolder, options: Options) -> int:
    if folder.findings() is None:
        return 1
    path = folder.results / FOLDER / f"{name.replace('/', '-')}.md"
    about = options.plain("experiment", name)["study"]
    files.write_text(path, page(name, folder, options.summary("experiment", name), about))
    if "table" in about:
        text = folder.text(TABLE)
        files.write_text(path.parent / _table(name), f"# {name}\n\n{about['table']}.\n\n{text}")
    _write_list(path.parent, options)
    print(path)
    return 0


def _table(name: str) -> str:
    return f"tables/{name.replace('/', '-')}.md"


def _write_list(folder: Path, options: Options) -> Path:
    path = folder / gallery.NAME
    files.write_text(path, gallery.index(folder, studies(options)))
    return path


def studies(options: Options) -> dict[str, gallery.Study]:
    """Return the experiments that have a study, by name."""
    experiments = {name: options.plain("experiment", name) for name in options.names("experiment")}
    return {
        name: gallery.Study(
            options.summary("experiment", name),
            about["study"]["source"],
            tuple(about.get("gallery") or ()),
        )
        for name, about in experiments.items()
        if about.get("study")
    }


def page(name: str, folder: SweepFolder, summary: str, study: Mapping[str, str]) -> str:
    """Return the page of an experiment in Markdown: our figures beside those of the source.

    Nothing in it depends on the machine, so that the same numbers give the same page.
    """
    config, figures = folder.config(), folder.findings()
    assert figures is not None
    words = [word for word in config["words"] if not word.startswith(("experiment=", "paths."))]
    command = " ".join(["python -m sweep reproduce", name, *words])
    table = f"{study['table']}: [{_table(name)}]({_table(name)})." if "table" in study else ""
    parts = [
        f"# {name}",
        summary,
        f"{findings.source_sentence(study['source'])} Made by `{command}`,"
        " which gives the same numbers on every machine.",
        findings.to_markdown(figures).rstrip(),
        study.get("notes", "").strip(),
        table,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
