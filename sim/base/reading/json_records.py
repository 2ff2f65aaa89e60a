"""Records in files of JSON, in the forms that commands and web interfaces write.

A file holds one record or more, one after the other (also one a line), or a list of them; a list
may lie inside an object, as the objects of ``kubectl get -o json`` lie in its ``items``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from sim.base.errors import InputError
from sim.base.reading.text import empty_file_error, read_text

_NAME = re.compile(r"\.(json|jsonl|ndjson)(\.(gz|zst|zstd|lz4|bz2|xz|zip))?$", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\r\n]*")
_CLOSING: Final = {"[": "]", "{": "}"}
_MAX_DEPTH: Final = 4
"""Number of objects that may lie around a list of records."""
Record = tuple[int, Any, dict[str, Any]]


def json_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the file, or all files of JSON in a folder and its folders, in order of their paths.

    Raises
    ------
    InputError
        If a folder has none.
    """
    root = Path(path)
    if not root.is_dir():
        return [root]
    files = sorted(file for file in root.rglob("[!.]*") if _NAME.search(file.name))
    files = [file for file in files if file.is_file()]
    if not files:
        text = "the folder has no files *.json, *.jsonl or *.ndjson, plain or compressed"
        raise InputError(text, file=root, rule="missing file")
    return files


def json_records(
    path: str | os.PathLike[str], wrappers: Collection[str], hint: str
) -> Iterator[Record]:
    """Yield the records of a file, plain or compressed.

    Parameters
    ----------
    path : path-like
        The file.
    wrappers : collection of str
        Keys of objects under which a list of records lies, or another such object.
    hint : str
        The command that writes such a file, for the error if it is no JSON.

    Yields
    ------
    line : int
        First line of the record.
    record : object
    around : dict
        Other fields of the objects around the list; complete after its last record.

    Raises
    ------
    InputError
        With file, line and rule: "empty file", "not JSON", "wrong line", those of `read_text`.
    """
    scanner = _Scanner(path, read_text(path).removeprefix("\ufeff"), frozenset(wrappers))
    if not scanner.peek():
        raise empty_file_error(path)
    if scanner.peek() not in _CLOSING:
        start = scanner.text[scanner.position :][:30].split("\n")[0]
        text = f"the file is not JSON, but begins with {start!r}; write it with {hint}"
        raise InputError(text, file=path, line=scanner.line, rule="not JSON")
    while scanner.peek():
        yield from scanner.value({}, 0)


class _Scanner:
    """Reads JSON values one after the other, and counts their lines."""

    def __init__(self, path: str | os.PathLike[str], text: str, wrappers: frozenset[str]) -> None:
        self.path, self.text, self.wrappers = path, text, wrappers
        self.position, self.line, self._counted = 0, 1, 0
        self._decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """Go to the next sign that is no space, and return it; "" at the end."""
        match = _SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position
        self.line += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self.text[self.position : self.position + 1]

    def value(
        self, around: dict[str, Any], depth: int, is_wrapper: bool = False
    ) -> Iterator[Record]:
        """Yield the records of a list, or of an object around one; else the value itself.

        `is_wrapper` if the value lies under a key of a wrapper, whose fields go to `around`.
        """
        sign, line = self.peek(), self.line
        if sign not in _CLOSING or depth == _MAX_DEPTH:
            yield line, self._scan(), around
        elif sign == "[":
            for _ in self._members():
                yield from self.value(around, depth + 1)
        else:
            fields = around if is_wrapper else {}
            for _ in self._members():
                key = self._key()
                if key in self.wrappers and self.peek() in _CLOSING:
                    is_wrapper = True
                    yield from self.value(fields, depth + 1, is_wrapper)
                else:
                    fields[key] = self._scan()
            if not is_wrapper:
                yield line, fields, around

    def _members(self) -> Iterator[None]:
        """Go to each member of the list or object that begins here, and behind its end."""
        closing = _CLOSING[self.text[self.position]]
        self.position += 1
        sign = self.peek()
        while sign != closing:
            yield
            sign = self.peek()
            if sign not in (",", closing):
                raise self._error(f"expected ',' or '{closing}', not {sign!r}")
            if sign == ",":
                self.position += 1
                self.peek()
        self.position += 1

    def _key(self) -> str:
        key = self._scan()
        if not isinstance(key, str) or self.peek() != ":":
            raise self._error("expected a name and ':'")
        self.position += 1
        self.peek()
        return key

    def _scan(self) -> Any:
        try:
            value, self.position = self._decode(self.text, self.position)
        except (ValueError, RecursionError) as error:
            raise self._error(str(error)) from None
        return value

    def _error(self, problem: str) -> InputError:
        text = f"invalid JSON from here on ({problem}); is the file whole?"
        return InputError(text, file=self.path, line=self.line, rule="wrong line")
