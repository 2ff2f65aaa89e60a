"""Checks of a reader, ``read(path, **options) -> Workload``: its account, and damaged files."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from sim.base.errors import InputError
from sim.check.account import check_account
from sim.check.broken import BrokenRuleError
from sim.check.subject import ModuleSubject, Options, Subject, own_function
from sim.check.workloads import chosen_options, folder_rules, workload_of
from sim.workload.workload import Workload

N_DAMAGED = 40
MAX_DAMAGED_BYTES = 1 << 20
"""Largest file that is read again in damaged forms."""


@dataclass(frozen=True)
class Reader(ModuleSubject):
    """The function `read` of a module, with a file that it reads."""

    sample: str = ""
    kind = "reader"

    def rules(self) -> Iterator[str]:
        """Yield the sentences of broken rules."""
        workload = self._read()
        yield from folder_rules(workload)
        try:
            check_account(workload)
        except BrokenRuleError as broken:
            yield str(broken)
        yield from self._damaged()

    def fingerprint(self) -> str:
        """Return the digest of the sample's workload."""
        return self._read().digest

    def _read(self) -> Workload:
        with self.calling(f"read({self.sample!r})"):
            return workload_of(self.module.read(self.sample, **self.options))

    def _damaged(self) -> Iterator[str]:
        """Yield a sentence for the first damaged file that is neither read nor refused."""
        sample = Path(self.sample)
        if not sample.is_file() or sample.stat().st_size > MAX_DAMAGED_BYTES:
            return
        content, rng = sample.read_bytes(), random.Random(1)
        with tempfile.TemporaryDirectory(prefix="check-") as folder:
            file = Path(folder) / sample.name
            for _ in range(N_DAMAGED):
                damage, damaged = _damage(content, rng)
                file.write_bytes(damaged)
                try:
                    with self.calling(f"read of a file with {damage}"):
                        self._read_damaged(file)
                except BrokenRuleError as broken:
                    yield f"{broken}: raise sim.InputError with file and line"
                    return

    def _read_damaged(self, file: Path) -> None:
        with suppress(InputError):
            self.module.read(str(file), **self.options)


def subjects(module: ModuleType, options: Options) -> list[Subject]:
    """Return the reader of a module, if it has one.

    Raises
    ------
    InputError
        If there is a reader and no sample, or an option is unknown.
    """
    function = own_function(module, "read")
    if function is None:
        return []
    if options.sample is None:
        raise InputError(
            f"the reader of {module.__name__} needs a small file in its format: give --sample FILE"
        )
    chosen = chosen_options("reader", function, options.values, 1)
    return [Reader(module, chosen, options.sample)]


def _damage(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return a damage of a file, and the damaged file."""
    lines = content.split(b"\n")
    row, column = rng.randrange(len(lines)), rng.randrange(len(content) + 1)
    if content:
        match rng.randrange(5):
            case 0:
                return "its last bytes missing", content[:column]
            case 1:
                byte = bytes([rng.randrange(256)])
                return "a byte changed", content[:column] + byte + content[column + 1 :]
            case 2:
                return "a line twice", b"\n".join([*lines[: row + 1], *lines[row:]])
            case 3:
                cut = lines[row][: len(lines[row]) // 2]
                return "half a line", b"\n".join([*lines[:row], cut, *lines[row + 1 :]])
            case _:
                words = lines[row].split(b",") if b"," in lines[row] else lines[row].split()
                word = rng.choice(words) if words else b""
                bad = rng.choice([b"", b"-1", b"nan", b"1e400", b"x", b"99999999999999999999"])
                changed = lines[row].replace(word, bad, 1) if word else bad
                text = f"{bad.decode()!r} in a field"
                return text, b"\n".join([*lines[:row], changed, *lines[row + 1 :]])
    return "a stray byte", b"\x00"
