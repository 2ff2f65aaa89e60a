"""Families of names that may be one program's: they begin alike, or differ in short numbers.

Argo and Kubernetes end names by `generateName`, others in other ways.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from typing import Final

import numpy as np

from policies.wing.lineage.templates import PATTERNS, Templates

MIN_FAMILY: Final = 5
"""Number of names from which on they are a family."""
MAX_FAMILIES: Final = 5
"""Number of families that are told: the largest."""
_GENERATED = re.compile(PATTERNS["generated"])
_NUMBER = re.compile("[0-9]+")
_RANK = re.compile(r" \([0-9]+\)$")  # of the programs that share a name
_LAST_PART = re.compile("[-_.][^-_./]+$")


def families(templates: Templates) -> dict[str, int]:
    """Count the names of each family, by what to say of it: the beginning, and what joins it."""
    n_jobs = np.bincount(templates.job_template, minlength=len(templates)).tolist()
    n_by_name: dict[str, int] = defaultdict(int)  # of all programs that share it
    for name, n in zip(templates.name, n_jobs, strict=True):
        n_by_name[_RANK.sub("", name)] += n
    n_by_text: dict[str, int] = defaultdict(int)
    for name, n in n_by_name.items():
        end = _GENERATED.search(name) or _LAST_PART.search(name)
        if n > 1 or end is None:
            continue
        if end.re is _GENERATED:
            beginning, option = name[: end.start()], "varying=default,generated"
        else:
            beginning = name[: end.start() + 1]
            patterns = ["default", f"(?<=^{re.escape(beginning)}).+"]
            option = f"'varying={json.dumps(patterns)}'"
        text = f"names that occur once each and begin with {beginning!r}; --set {option} joins them"
        n_by_text[text] += 1
    largest = sorted(n_by_text.items(), key=lambda item: (-item[1], item[0]))[:MAX_FAMILIES]
    counts = {text: n for text, n in largest if n >= MIN_FAMILY}
    plain = Counter(_NUMBER.sub("#", name) for name, n in n_by_name.items() if n > 1)
    n_numbered = sum(n for n in plain.values() if n > 1)
    if n_numbered:
        option = """--set 'varying=["default", "[0-9]+"]'"""
        text = f"templates that differ from another in short numbers alone; {option} joins"
        counts[text] = n_numbered
    return counts
