"""A fresh process of `sim.check.repeat`: print the fingerprint of one subject."""

from __future__ import annotations

import json
import sys

from sim.check.find import subjects
from sim.check.subject import Options


def main() -> None:
    """Read the request from standard input; print the fingerprint."""
    request = json.load(sys.stdin)
    options = Options(request["sample"], request["values"])
    for subject in subjects(request["module"], options):
        if (subject.kind, subject.name) == (request["kind"], request["name"]):
            print(subject.fingerprint())
