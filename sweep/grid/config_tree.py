"""Configurations as nested dicts: access by dotted key, resolution, YAML and JSON text."""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from sim.base.errors import InputError, unknown

Tree = dict[str, Any]

_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")
_RESOLVES_FURTHER = re.compile(r"\$\{|\?\?\?")
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times faster, where it was built


def get(tree: Mapping[str, Any], key: str) -> Any:
    """Return the value at a dotted key; raise KeyError if there is none."""
    node: Any = tree
    for part in key.split("."):
        if not isinstance(node, Mapping) or part not in node:
            raise KeyError(key)
        node = node[part]
    return node


def with_value(tree: Tree, key: str, value: Any, *, add: bool = False) -> Tree:
    """Return a copy of `tree` with the value at a dotted key replaced."""
    root = copy.deepcopy(tree)
    node = root
    *path, last = key.split(".")
    for i, part in enumerate(path):
        if part not in node and not add:
            raise InputError(unknown("key", key, keys(tree)), rule="unknown key")
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise InputError(
                f"{key}: {'.'.join(path[: i + 1])} is {child!r}, which has no keys inside",
                rule="unknown key",
            )
        node = child
    if last not in node and not add:
        raise InputError(unknown("key", key, keys(tree)), rule="unknown key")
    if not add:
        _check_type(key, node[last], value)
    node[last] = copy.deepcopy(value)
    return root


def without(tree: Tree, key: str) -> Tree:
    """Return a copy of `tree` without a dotted key (Hydra's ``~key``)."""
    root = copy.deepcopy(tree)
    node: Any = root
    *path, last = key.split(".")
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict) or last not in node:
        raise InputError(unknown("key", key, keys(tree)), rule="unknown key")
    del node[last]
    return root


def keys(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield every dotted key of a tree, including inner nodes."""
    for name, value in tree.items():
        yield f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from keys(value, f"{prefix}{name}.")


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that is not a mapping, with its dotted key."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def interpolates(value: Any) -> bool:
    """Tell whether any text in `value` refers to another key (``${...}``)."""
    if isinstance(value, str):
        return "${" in value
    if isinstance(value, Mapping):
        return any(interpolates(v) for v in value.values())
    return isinstance(value, list) and any(interpolates(v) for v in value)


def resolved(tree: Tree) -> Tree:
    """Return a copy of `tree` with every interpolation replaced by its value."""
    if not interpolates(tree):
        return tree
    # a tenth of the time of OmegaConf, which matters for each cell
    with contextlib.suppress(_IntricateError):
        return {key: _replaced(value, tree) for key, value in tree.items()}
    from omegaconf import OmegaConf  # not in a worker, which gets resolved configurations
    from omegaconf.errors import OmegaConfBaseException

    try:
        plain = OmegaConf.to_container(OmegaConf.create(tree), resolve=True)
    except OmegaConfBaseException as error:
        raise InputError(f"the configuration does not resolve: {error}") from error
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


class _IntricateError(Exception):
    """An interpolation that is more than a reference to a plain value."""


def _replaced(value: Any, tree: Tree) -> Any:
    """Return a copy of a value with each text that is a plain ``${key}`` replaced by its value."""
    if isinstance(value, dict):
        return {key: _replaced(inner, tree) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, tree) for inner in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    reference = _REFERENCE.fullmatch(value)
    if reference is None:
        raise _IntricateError
    try:
        referenced = get(tree, reference[1])
    except KeyError:
        raise _IntricateError from None
    if isinstance(referenced, Mapping | list) or (
        isinstance(referenced, str) and _RESOLVES_FURTHER.search(referenced)
    ):
        raise _IntricateError
    return referenced


def to_yaml(tree: Any) -> str:
    """Write mappings, lists and scalars as YAML, keys in the order given."""
    plain = json.loads(json.dumps(tree, default=str))
    return yaml.dump(plain, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=100)


MAX_LISTED = 1_000
"""Maximum length of a list of consecutive numbers that is written in full."""


def abbreviated(values: Sequence[Any]) -> Any:
    """Shorten a long list of consecutive seeds to its range, as text."""
    n = len(values)
    if n <= MAX_LISTED or any(type(value) is not int for value in values):
        return list(values)
    is_range = all(value == expected for expected, value in enumerate(values, start=values[0]))
    return f"range({values[0]},{values[0] + n})" if is_range else list(values)


def canonical(content: Any) -> str:
    """Write JSON with sorted keys and no spaces: equal content gives equal text.

    Unpaired surrogates, which a Python string can hold and UTF-8 cannot, are escaped.
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text if text.isascii() else _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


_SURROGATE = re.compile(r"[\ud800-\udfff]")


def _check_type(key: str, old: Any, new: Any) -> None:
    if isinstance(new, str) and "${" in new:
        return
    if isinstance(old, str) and (old == "???" or "${" in old):
        return
    allowed: dict[type, tuple[tuple[type, ...], str]] = {
        bool: ((bool,), "true or false"),
        int: ((int, float, type(None)), "a number"),
        float: ((int, float, type(None)), "a number"),
    }
    types, words = allowed.get(type(old), ((object,), ""))
    is_wrong_bool = isinstance(new, bool) and type(old) in (int, float)
    if not isinstance(new, types) or is_wrong_bool:
        raise InputError(f"{key} must be {words}, not {new!r}", rule="wrong type")
