"""A good archive is the same in all that it states."""

from __future__ import annotations

from tests.sweep.archive.entries import Entries
from tests.sweep.archive.sandbox import Sandbox


def test_all_of_it(good: Entries, box: Sandbox) -> None:
    verified = box.attack(dict(good), "--cells=9")
    print(verified.out, verified.err)
    assert verified.is_harmless, verified
    assert (verified.code, verified.out.count(": same (")) == (0, 4), verified
