"""From words to a request, with the user's modules found and the study checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sweep.grid import overrides, remote_results, request
from sweep.grid.options import Options
from sweep.grid.request import Request
from sweep.papers import studies
from sweep.store import sync
from sweep.store.folder import SweepFolder


def make_request(
    overrides: Sequence[str], config_dirs: Sequence[str] = (), *, fail_fast: bool = False
) -> Request:
    """Make a request, with the user's modules found and the experiment's study checked."""
    options = Options.from_folders(config_dirs)
    find_modules(options)
    asked = request.read(overrides, options, fail_fast=fail_fast)
    if asked.study is not None and asked.experiment is not None:
        studies.check(asked.study, options.files["experiment"][asked.experiment])
    sync.fetch(asked.settings.results)
    return asked


def repeat_request(
    folder: SweepFolder, words: Sequence[str] = (), *, fail_fast: bool = False
) -> Request:
    """Ask for the grid of a sweep that is over again; `words` say where and how it runs."""
    config = folder.config()
    dirs = config["config_dirs"]
    return request_for_results(folder.results, config["words"], dirs, words, fail_fast=fail_fast)


def request_for_results(
    results: Path,
    asked: Sequence[str],
    config_dirs: Sequence[str],
    words: Sequence[str] = (),
    *,
    fail_fast: bool = False,
) -> Request:
    """Ask for a grid in a folder of results, unless `words`, of where and how, name another."""
    where = []
    if not any(word.startswith("paths.results=") for word in words):
        address = remote_results.address_for(results) or str(results)
        where.append(overrides.quote("paths.results", address))
    return make_request([*asked, *words, *where], config_dirs, fail_fast=fail_fast)


def find_modules(options: Options) -> None:
    """Let the user's modules be found."""
    sys.path.extend(folder for folder in python_path(options) if folder not in sys.path)


def python_path(options: Options) -> list[str]:
    """Folders in which a user's modules may lie: here, the config folders and their parents."""
    folders = [Path.cwd()]
    for folder in options.user_dirs:
        folders += [folder, folder.parent]
    return [str(folder) for folder in dict.fromkeys(folders)]
