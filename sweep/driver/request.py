"""Requests of the driver: the command line parsed, user modules found, the study checked."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from sim.base.errors import InputError
from sim.base.text import is_utf8, not_utf8
from sweep.grid import overrides, plugins, remote_results, request
from sweep.grid.options import Options
from sweep.grid.request import Request
from sweep.store import sync
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal


def make_request(
    overrides: Sequence[str],
    config_dirs: Sequence[str] | Options = (),
    *,
    fail_fast: bool = False,
) -> Request:
    """Parse a command line into a request; find user modules; let plug-ins check it.

    A strategy may add words, as a backtest does that reads them from its log.
    """
    options = config_dirs if isinstance(config_dirs, Options) else Options.from_folders(config_dirs)
    find_modules(options)
    parsed = request.read(overrides, options, fail_fast=fail_fast)
    _check_names([parsed.settings.results, Path.cwd(), *options.user_dirs])
    for _ in plugins.results(plugins.SECTIONS, "check", parsed):
        pass
    sync.fetch(parsed.settings.results)
    words = [w for added in plugins.results(plugins.STRATEGIES, "words", parsed) for w in added]
    return request.read([*overrides, *words], options, fail_fast=fail_fast) if words else parsed


def _check_names(folders: Iterable[Path]) -> None:
    """Raise InputError for a folder whose name is no text, as files that have it are UTF-8."""
    for folder in folders:
        if not is_utf8(str(folder)):
            raise InputError(f"the folder {str(folder)!r} {not_utf8(str(folder))}", rule="folder")


def repeat_request(
    folder: SweepFolder, words: Sequence[str] = (), *, fail_fast: bool = False
) -> Request:
    """Build the request of a finished sweep again; `words` set where and how it runs."""
    config = folder.config()
    options = recorded_options(folder, config["config_dirs"])
    return request_for_results(folder.results, config["words"], options, words, fail_fast=fail_fast)


def recorded_options(folder: SweepFolder, config_dirs: Sequence[str]) -> Options:
    """Build the options of a finished sweep again, from its recorded option folders.

    They are looked up where this machine had them as the sweep ran, else below the working folder.
    """
    for event in reversed(Journal(folder.results, folder.sweep).milestones()):
        places = event.get("option_folders", ())
        if len(places) == len(config_dirs) and all(Path(place).is_dir() for place in places):
            return Options.from_folders(places, config_dirs)
    return Options.from_folders(config_dirs, config_dirs)


def find_recorded_modules(folder: SweepFolder) -> None:
    """Add the folders of a finished sweep's user modules to the module search path, if here."""
    find_modules(Options())
    with contextlib.suppress(InputError):  # a folder that came from another machine
        find_modules(recorded_options(folder, folder.config()["config_dirs"]))


def request_for_results(
    results: Path,
    grid_words: Sequence[str],
    config_dirs: Sequence[str] | Options,
    words: Sequence[str] = (),
    *,
    fail_fast: bool = False,
) -> Request:
    """Build a request for a results folder, unless `words`, of run settings, name another."""
    location = []
    if not any(word.startswith("paths.results=") for word in words):
        address = remote_results.address_for(results) or str(results)
        location.append(overrides.quote("paths.results", address))
    return make_request([*grid_words, *words, *location], config_dirs, fail_fast=fail_fast)


def find_modules(options: Options) -> None:
    """Add the folders of user modules to the module search path."""
    sys.path.extend(folder for folder in python_path(options) if folder not in sys.path)


def python_path(options: Options) -> list[str]:
    """Return the folders of user modules: here, the option folders and their parents."""
    folders = [Path.cwd()]
    for folder in options.user_dirs:
        folders += [folder, folder.parent]
    return [str(folder) for folder in dict.fromkeys(folders)]
