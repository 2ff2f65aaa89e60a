"""What a word of the command line may become: ``python -m sweep.cli.candidates WORD ... LAST``.

Shells ask this at every Tab, so nothing heavy is imported: no Ray, no numba, no Hydra.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from sweep.cli.verbs import FLAGS, OF_SWEEPS, TOPICS, VERBS, is_bare, verb_at
from sweep.grid.options import GROUPS, SWEPT_GROUPS, Options, bundled

SHELLS = ("bash", "zsh", "fish")
_OPEN = ("policy.", "trace.", "cluster.")
_OF_REPORT = ("baseline=", "metrics=")


def candidates(words: Sequence[str]) -> list[str]:
    """Give what the last of the words may become; empty where it may be a file."""
    *before, last = words or [""]
    options = _options(before)
    at = verb_at([*before])
    verb = before[at] if at is not None else "run"
    if before[-1:] == ["--config-dir"]:
        return []
    found: Iterable[str]
    if before[-1:] == ["--help"] and at is None:
        found = (*TOPICS, *_values("policy", "", before, options))
    elif last.startswith("-"):
        found = FLAGS.get(verb, ("--help",))
    elif "=" in last:
        key, _, value = last.partition("=")
        found = _values(key, value, before, options)
    else:
        first = () if at is not None else (*VERBS, "help")
        found = (*first, *_names(verb, at, before, options), *_keys(verb, last, before, options))
    return list(dict.fromkeys(word for word in found if word.startswith(last)))


def _options(before: Sequence[str]) -> Options:
    folders = [b for a, b in pairwise(before) if a == "--config-dir"]
    folders += [word.partition("=")[2] for word in before if word.startswith("--config-dir=")]
    return Options.from_folders(
        [folder for folder in folders if Path(folder).expanduser().is_dir()]
    )


def _names(verb: str, at: int | None, before: Sequence[str], options: Options) -> Iterator[str]:
    """Give what a verb takes by name: sweeps, experiments, shells."""
    if verb in OF_SWEEPS:
        results = Path(_given("paths.results", before) or "results").expanduser()
        found = [path.name for path in (results / "sweeps").glob("*")]
        found += [path.stem for path in (results / "journal").glob("*.jsonl")]
        yield from sorted({name.rpartition("-")[0] for name in found} | {*found})
    elif verb == "reproduce":
        yield from options.names("experiment")
    elif verb == "completion" and not any(is_bare(word) for word in before[(at or 0) + 1 :]):
        yield from SHELLS


def _keys(verb: str, last: str, before: Sequence[str], options: Options) -> Iterator[str]:
    if verb in (*OF_SWEEPS, "list", "completion"):
        yield from _OF_REPORT if verb == "report" else ()
        yield "paths.results="
        return
    config = yaml.safe_load((bundled() / "config.yaml").read_text(encoding="utf-8"))
    if "." not in last:
        yield from (f"{group}=" for group in GROUPS)
        yield from (f"{key}=" for key, value in config.items() if _is_value(key, value))
        yield from _OPEN
    yield from (f"{head}." for head in ("launcher", "tracking") if "." not in last)
    for head in (key for key, value in config.items() if isinstance(value, dict)):
        yield from (f"{head}.{key}=" for key in config[head])
    group = last.partition(".")[0]
    if "." in last and group in GROUPS:
        yield from (f"{group}.{key}=" for key in _parameters(group, before, options))


def _is_value(key: str, value: Any) -> bool:
    return key != "defaults" and not isinstance(value, dict)


def _parameters(group: str, before: Sequence[str], options: Options) -> Iterator[str]:
    """Name the parameters of the chosen options of a group; of all of them if none is chosen."""
    chosen = [name for name in (_given(group, before) or "").split(",") if name]
    known = [name for name in chosen if name in options.files[group]]
    for name in known or options.names(group):
        content = options.plain(group, name)
        if group == "policy" and known:
            yield from _fields(content)
        yield from (key for key in content if key not in ("defaults", "name", "module"))


def _fields(content: dict[str, Any]) -> list[str]:
    import policies  # with NumPy, for whoever asks for a policy's parameters only

    with contextlib.suppress(Exception):
        if content.get("module") is not None:
            policies.registry.load(str(content["module"]))
        return [field.name for field in dataclasses.fields(policies.spec(content["name"]))]
    return []


def _values(key: str, value: str, before: Sequence[str], options: Options) -> Iterator[str]:
    """Give what may stand after ``key=``: the part after the last comma is what is completed."""
    kept = value[: len(value) - len(value.rpartition(",")[2])]
    kept = kept or ("[" if value.startswith("[") else "")
    names: Sequence[str] = ()
    if key in GROUPS:
        names = options.names(key)
    elif key == "baseline":
        chosen = _given("policy", before)
        names = chosen.split(",") if chosen else options.names("policy")
    elif key in ("metrics", "seeds_metric"):
        from sim import metrics  # its modules are loaded where metrics are asked for only

        names = [*metrics.METRICS]
    elif key == "seeds":
        names = ["auto"]
    kept = kept if key in (*SWEPT_GROUPS, "metrics") else ""
    yield from (f"{key}={kept}{name}" for name in names)


def _given(key: str, before: Sequence[str]) -> str | None:
    found = [word.partition("=")[2] for word in before if word.startswith(f"{key}=")]
    return found[-1] if found else None


if __name__ == "__main__":
    with contextlib.suppress(Exception):  # a Tab is no place for a traceback
        print("\n".join(candidates(sys.argv[1:])))
