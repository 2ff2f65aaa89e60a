"""Options: the configuration folders, their choices, and the composition of one choice."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

from sim.base import entry_points
from sim.base.errors import InputError, unknown
from sim.base.sources import modules
from sim.base.text import is_utf8
from sweep.grid.yaml_aliases import check_aliases

GROUPS = ("policy", "trace", "cluster", "evaluator", "experiment", "launcher", "tracking")
SWEPT_GROUPS = ("policy", "trace", "cluster")


def bundled() -> Path:
    """Return the bundled configuration's folder: in an installed package, else the checkout's."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "_conf"
    return inside if inside.is_dir() else package.parent / "conf"


@cache
def installed() -> dict[str, Path]:
    """Return the folders of options that packages bring, by entry: ``conf`` in the entry's module.

    One that is not there has no options; a broken package is no reason to refuse a sweep.
    """
    folders = {}
    for name, entry in entry_points.installed("options").items():
        module = modules.find(entry.module)
        if module is not None and (folder := module.file.parent / modules.OPTIONS).is_dir():
            folders[name] = folder
    return folders


def is_bundled(file: Path) -> bool:
    """Tell whether an option's file is bundled or a package's, and not the user's own."""
    return any(map(file.is_relative_to, (bundled(), *installed().values())))


@dataclass(frozen=True)
class Options:
    """All options: of the bundled configuration, of packages, and of the user's own folders."""

    # folders with the layout of the bundled one (``policy/mine.yaml``), absolute
    user_dirs: tuple[Path, ...] = ()
    # the same as records have them: no absolute path of a folder below the working folder
    recorded_dirs: tuple[str, ...] = ()

    @classmethod
    def from_folders(
        cls, user_dirs: Sequence[str], recorded_dirs: Sequence[str] | None = None
    ) -> Options:
        """Build the options with the user's folders, given by name.

        Records name them as given, relative to the working folder if they are below it; or as
        `recorded_dirs`, if they were recorded before.
        """
        folders = []
        for name in user_dirs:
            folder = Path(name).expanduser().resolve()
            if not folder.is_dir():
                raise InputError(f"--config-dir {name}: no such folder")
            folders.append(folder)
        if recorded_dirs is None:
            recorded_dirs = [*map(_recorded_dir, user_dirs, folders)]
        return cls(tuple(folders), tuple(recorded_dirs))

    @cached_property
    def files(self) -> dict[str, dict[str, Path]]:
        """Files of all options, by group and name."""
        table: dict[str, dict[str, Path]] = {group: {} for group in GROUPS}
        for root in (bundled(), *installed().values(), *self.user_dirs):
            for group, known in table.items():
                for file in sorted((root / group).rglob("*.yaml")):
                    name = file.relative_to(root / group).with_suffix("").as_posix()
                    if name in known:
                        raise InputError(
                            f"{group}={name} exists already ({known[name]}); rename this one",
                            file=file,
                        )
                    known[name] = file
        return table

    def names(self, group: str) -> list[str]:
        """Return the names of the options of a group, sorted."""
        return sorted(self.files[group])

    def names_swept(self, key: str) -> list[str]:
        """Return the names that ``glob()`` picks from; none unless the key's group is swept."""
        return self.names(key) if key in SWEPT_GROUPS else []

    def default(self, group: str) -> str:
        """Return the default option of a group."""
        if group not in _defaults():
            file = bundled() / "config.yaml"
            raise InputError(f"no default for {group}; give {group}=NAME", file=file)
        return self.check(group, _defaults()[group])

    def check(self, group: str, name: object) -> str:
        """Return `name` if it is an option of `group`."""
        if not isinstance(name, str) or name not in self.files[group]:
            raise InputError(unknown(group, str(name), self.names(group)), rule=f"unknown {group}")
        return name

    def plain(self, group: str, name: str) -> dict[str, Any]:
        """Read an option's file as it is, without composing its defaults."""
        file = self.files[group][self.check(group, name)]
        try:
            return yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        except (yaml.YAMLError, ValueError) as error:
            raise _broken(f"{group}={name}", error, file) from error

    def summary(self, group: str, name: str) -> str:
        """Return the first line of an option's leading comment, empty if there is none."""
        with self.files[group][name].open(encoding="utf-8") as lines:
            first = lines.readline()
        return first.removeprefix("#").strip() if first.startswith("#") else ""

    def compose(self, **choices: str) -> dict[str, Any]:
        """Compose the whole configuration with these choices, one option per group."""
        # takes half a second, which the completion of a command line does not need
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        overrides = [f"{group}={self.check(group, name)}" for group, name in choices.items()]
        missing = (g for g, name in _defaults().items() if name not in self.files.get(g, (name,)))
        overrides += [f"~{group}" for group in missing if group not in choices]  # of a package
        for folder in self.user_dirs:
            check_aliases(folder)
        try:
            folders = (*installed().values(), *self.user_dirs)
            paths = ",".join(f"'file://{folder}'" for folder in folders)
            overrides.append(f"hydra.searchpath=[{paths}]")
            if self.user_dirs:  # the user may be editing them
                return _composed(tuple(overrides))
            return copy.deepcopy(_composed_of_bundled(tuple(overrides)))
        except (
            *(HydraException, OmegaConfBaseException, yaml.YAMLError),
            *(ValueError, RecursionError),  # not UTF-8, an invalid date, endless lists
            OSError,  # a number instead of a mapping; an unreadable file
        ) as error:
            chosen = " ".join(f"{group}={name}" for group, name in choices.items())
            user_files = [self.files[group][name] for group, name in choices.items()]
            user_files = [file for file in user_files if not is_bundled(file)]
            raise _broken(chosen, error, user_files[0] if len(user_files) == 1 else None) from error


def _recorded_dir(name: str, folder: Path) -> str:
    """Return the name of a folder that other machines may have: relative, if possible."""
    with contextlib.suppress(ValueError, OSError):
        return folder.relative_to(Path.cwd().resolve()).as_posix()
    return name


def _broken(chosen: str, error: Exception, file: Path | None = None) -> InputError:
    """Build the error of a choice that does not compose, with file and line if known."""
    line, reason = None, "; ".join(map(str.strip, str(error).strip().splitlines()))
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(filter(None, (error.context, error.problem)))
        if mark is not None:
            file = Path(mark.name) if Path(mark.name).is_absolute() else file
            line = mark.line + 1
    return InputError(f"{chosen} does not compose: {reason}", file=file, line=line)


@cache
def _defaults() -> dict[str, Any]:
    """Return the default option of each group in the bundled configuration."""
    text = (bundled() / "config.yaml").read_text(encoding="utf-8")
    entries = yaml.safe_load(text)["defaults"]
    return {group: name for e in entries if isinstance(e, dict) for group, name in e.items()}


def _composed(overrides: tuple[str, ...]) -> dict[str, Any]:
    # as above
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(bundled()), version_base="1.3"):
        config = compose("config", list(overrides))
    raw = OmegaConf.to_container(config, resolve=False)
    assert isinstance(raw, dict)
    if not is_utf8(json.dumps(raw, ensure_ascii=False, default=str)):
        raise ValueError("it contains half of a surrogate pair, which UTF-8 cannot encode")
    return {str(key): value for key, value in raw.items()}


# a fifth of a second each, and the same ones are needed repeatedly
_composed_of_bundled = lru_cache(maxsize=256)(_composed)
