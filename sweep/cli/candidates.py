"""Completions of the last word: ``python -m sweep.cli.candidates WORD ... LAST``.

Shells call this at every Tab, so nothing heavy is imported: no Ray, no numba, no Hydra.
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

from sweep.cli import verbs
from sweep.cli.verbs import TOPICS, is_bare, takes, verb_position
from sweep.grid.options import GROUPS, SWEPT_GROUPS, Options, bundled

SHELLS = ("bash", "zsh", "fish")
_OPEN = ("policy.", "trace.", "cluster.")
_REPORT_KEYS = ("baseline=", "metrics=")


def candidates(words: Sequence[str]) -> list[str]:
    """Return the completions of the last word; empty where it may be a file."""
    *before, last = words or [""]
    options = _options(before)
    position = verb_position([*before])
    verb = before[position] if position is not None else "run"
    if before[-1:] == ["--config-dir"]:
        return []
    words_to_offer: Iterable[str]
    if before[-1:] == ["--help"] and position is None:
        words_to_offer = (
            *TOPICS,
            *_values("policy", "", before, options),
            *_values("trace", "", before, options),
        )
    elif last.startswith("-"):
        words_to_offer = verbs.about(verb).flags if verb in verbs.names() else ("--help",)
    elif "=" in last:
        key, _, value = last.partition("=")
        words_to_offer = _values(key, value, before, options)
    else:
        offered = () if position is not None else (*verbs.names(), "help")
        names = _names(verb, position, before, options)
        words_to_offer = (*offered, *names, *_keys(verb, last, before, options))
    return list(dict.fromkeys(word for word in words_to_offer if word.startswith(last)))


def _options(before: Sequence[str]) -> Options:
    folders = [b for a, b in pairwise(before) if a == "--config-dir"]
    folders += [word.partition("=")[2] for word in before if word.startswith("--config-dir=")]
    return Options.from_folders(
        [folder for folder in folders if Path(folder).expanduser().is_dir()]
    )


def _names(
    verb: str, position: int | None, before: Sequence[str], options: Options
) -> Iterator[str]:
    """Yield the names that a verb takes: sweeps, experiments, shells."""
    if _takes(verb, "SWEEP"):
        results = Path(_last_value("paths.results", before) or "results").expanduser()
        ids = [path.name for path in (results / "sweeps").glob("*")]
        ids += [path.stem for path in (results / "journal").glob("*.jsonl")]
        yield from sorted({name.rpartition("-")[0] for name in ids} | {*ids})
    elif _takes(verb, "EXPERIMENT"):
        yield from options.names("experiment")
    elif verb == "completion" and not any(is_bare(word) for word in before[(position or 0) + 1 :]):
        yield from SHELLS


def _takes(verb: str, word: str) -> bool:
    return verb in verbs.names() and takes(verb, word)


def _keys(verb: str, last: str, before: Sequence[str], options: Options) -> Iterator[str]:
    is_grid = _takes(verb, "key=value")
    if (_takes(verb, "SWEEP") and not is_grid) or verb in ("list", "completion"):
        yield from _REPORT_KEYS if verb == "report" else ()
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
    """Yield the parameters of the chosen options of a group; of all options if none is chosen."""
    chosen = [name for name in (_last_value(group, before) or "").split(",") if name]
    known = [name for name in chosen if name in options.files[group]]
    for name in known or options.names(group):
        content = options.plain(group, name)
        if group == "policy" and known:
            yield from _fields(content)
        yield from (key for key in content if key not in ("defaults", "name", "module"))


def _fields(content: dict[str, Any]) -> list[str]:
    import policies.registry  # loads NumPy: only for the parameters of a policy

    with contextlib.suppress(Exception):
        if content.get("module") is not None:
            policies.registry.load(str(content["module"]))
        return [field.name for field in dataclasses.fields(policies.spec(content["name"]))]
    return []


def _values(key: str, value: str, before: Sequence[str], options: Options) -> Iterator[str]:
    """Yield values of a key: the part after the last comma is completed."""
    typed = value[: len(value) - len(value.rpartition(",")[2])]
    typed = typed or ("[" if value.startswith("[") else "")
    names: Sequence[str] = ()
    if key in GROUPS:
        names = options.names(key)
    elif key == "baseline":
        chosen = _last_value("policy", before)
        names = chosen.split(",") if chosen else options.names("policy")
    elif key in ("metrics", "seeds_metric"):
        from sim import metrics  # loads its modules: only for names of metrics

        names = [*metrics.METRICS]
    elif key == "seeds":
        names = ["auto", "bootstrap"]
    typed = typed if key in (*SWEPT_GROUPS, "metrics") else ""
    yield from (f"{key}={typed}{name}" for name in names)


def _last_value(key: str, before: Sequence[str]) -> str | None:
    values = [word.partition("=")[2] for word in before if word.startswith(f"{key}=")]
    return values[-1] if values else None


if __name__ == "__main__":
    with contextlib.suppress(Exception):  # a Tab is no place for a traceback
        print("\n".join(candidates(sys.argv[1:])))
