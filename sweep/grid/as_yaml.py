"""Plain data as YAML text."""

from __future__ import annotations

import json
from typing import Any

import yaml

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times faster, where it was built


def to_yaml(tree: Any) -> str:
    """Write mappings, lists and scalars as YAML, keys in the order given."""
    plain = json.loads(json.dumps(tree, default=str))
    text: str = yaml.dump(plain, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=100)
    return text
