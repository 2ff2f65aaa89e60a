"""Masking of passwords and tokens before they reach a log, report, provenance file or MLflow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

MASK = "***"
_SHORT = 200

_NAME = (
    r"(?:password|passwd|pwd|secret|token|api[_-]?key|(?:access|account|sas)[_-]?key|credentials?)"
)
_KEY = rf"(?<![A-Za-z])(?:[\w.-]*[._-])?{_NAME}"
# A token may be a quantity (a share of a cluster): a number after it stays. Text after a comma
# belongs to the value, unless it is another key: the password of password=a,b,seed=0 is a,b.
_VALUE = r"(?!(?<=token=)[\d.]+(?![^\s,&\"']))[^\s&;,\"']+(?:,[^\s&;,\"'=]++(?!=))*"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        # scheme://user:password@host, up to the last @ of the word: it may hold / and @
        r"(://[^\s\"'@/:]*:)[^\s\"']+(?=@)",
        # https://token@host: a lone name before @ is a token as often as a user
        r"(https?://)[^\s\"'@/:]+(?=@)",
        # password=..., ?token=..., TRACKING_TOKEN=...
        rf"({_KEY}=[\"']?){_VALUE}",
        # --api-key ...
        rf"(--{_NAME}\s+[\"']?)[^\s\"']+",
        # a line of YAML or JSON, or of a diff of one
        rf"(^[+\-\s\"']*{_KEY}[\"']?\s*:\s*[\"']?){_VALUE}",
        r"(\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}",
    )
)
_CUE = re.compile(rf"://|{_NAME}|bearer|basic", re.IGNORECASE)
"""Text that every pattern needs: a sweep masks millions of texts, and few have it."""
_SECRET_KEY = re.compile(rf"(?:.*[._-])?{_NAME}", re.IGNORECASE)


def mask(text: str) -> str:
    """Replace passwords and tokens in a text by ``***``."""
    return _mask_short(text) if len(text) <= _SHORT else _mask(text)


def _mask(text: str) -> str:
    if not _CUE.search(text):
        return text
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{MASK}", text)
    return text


# the configurations of ten thousand cells are the same few hundred short texts
_mask_short = lru_cache(maxsize=4096)(_mask)


def mask_tree(tree: Any) -> Any:
    """Return a copy of nested mappings and lists with `mask` applied to every string.

    A value under a key that names a secret (``password``, ``tracking.token``) is replaced entirely;
    a number under ``token`` stays, as it is a quantity.
    """
    if isinstance(tree, str):
        return mask(tree)
    if isinstance(tree, Mapping):
        return {key: mask_under(str(key), value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [mask_tree(item) for item in tree]
    return tree


def mask_under(key: str, value: Any) -> Any:
    """Apply `mask_tree` to a value, or to a list of values, of a key."""
    if isinstance(value, list | tuple):
        return [mask_under(key, item) for item in value]
    return MASK if _is_secret(key, value) else mask_tree(value)


def _is_secret(key: str, value: Any) -> bool:
    if isinstance(value, str):
        return bool(value) and _names_secret(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and _names_secret(key) and not key.lower().endswith("token")


@lru_cache(maxsize=4096)
def _names_secret(key: str) -> bool:
    return _SECRET_KEY.fullmatch(key) is not None
