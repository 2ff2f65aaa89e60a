"""Families of names that may be one program's: they begin alike, or differ in short numbers.

Argo and Kubernetes end names by `generateName`, others in other ways.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Final

import numpy as np

from sim.base.arrays import I8
from sim.lineage.templates import PATTERNS, Templates

MIN_FAMILY: Final = 5
"""Number of names from which on they are a family."""
_GENERATED = re.compile(PATTERNS["generated"])
_NUMBER = re.compile("[0-9]+")
_LAST_PART = re.compile("[-_][^-_]+$")


def families(templates: Templates) -> dict[str, int]:
    """Count the names of each family, by what to say of it: the beginning, and what joins it."""
    once = np.flatnonzero(np.bincount(templates.job_template, minlength=len(templates)) == 1)
    n_by_text: dict[str, int] = defaultdict(int)
    option = "--set varying=default,generated"
    for name in (templates.name[row] for row in once.tolist()):
        end = _GENERATED.search(name) or _LAST_PART.search(name)
        if end is None:
            continue
        if end.re is _GENERATED:
            beginning, joining = name[: end.start()], option
        else:
            beginning = name[: end.start() + 1]
            joining = f"""--set 'varying=["default", "(?<=^{re.escape(beginning)}).+"]'"""
        text = f"names that occur once each and begin with {beginning!r}; {joining} joins them"
        n_by_text[text] += 1
    counts = {text: n for text, n in sorted(n_by_text.items()) if n >= MIN_FAMILY}
    n_numbered = _numbered(templates, once)
    if n_numbered:
        option = """--set 'varying=["default", "[0-9]+"]'"""
        counts[f"templates that differ from another in short numbers alone; {option} joins"] = (
            n_numbered
        )
    return counts


def _numbered(templates: Templates, once: I8) -> int:
    """Count the templates of several runs whose names are another's but for numbers."""
    several = np.delete(np.arange(len(templates)), once).tolist()
    plain = Counter(_NUMBER.sub("#", templates.name[row]) for row in several)
    return sum(n for n in plain.values() if n > 1)
