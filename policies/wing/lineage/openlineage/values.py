"""JSON values of a file, one after another: lines, objects over several lines, lists of them.

The text is decoded piece by piece, so that a large file takes no memory beyond its values.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.base.reading import broken_text_error, check_values, open_text

_PIECE_BYTES: Final = 1 << 20
_BETWEEN = re.compile("[ \t\r\n,\x1e]*")  # \x1e begins a value of a JSON text sequence
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")  # half of a surrogate pair, maybe without the other
_TAIL: Final = 12
"""Characters at the end of a piece in which an error may come from its being cut there."""


@dataclass(frozen=True)
class Malformed:
    """A piece of text that is no JSON value, and the reason."""

    reason: str


def json_values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the values of a file with their lines; `Malformed` for text that is none.

    The elements of lists are values of their own. After malformed text reading goes on at the next
    line, or at the next object that begins a line if the text began as an object.
    """
    text = _Text(path)
    in_list = False
    while character := text.next_character():
        if character == ("]" if in_list else "["):
            in_list = not in_list
            text.position += 1
            continue
        line = text.line()
        yield line, text.value()


class _Text:
    """Text of a file from `position` on, of which a part is decoded."""

    def __init__(self, path: Path) -> None:
        self.position = 0
        self._path = path
        self._stream = open_text(path)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
        self._text = ""
        self._line, self._counted = 1, 0
        self._is_suspect = False  # it may hold halves of surrogate pairs
        self._decode = json.JSONDecoder().raw_decode

    def next_character(self) -> str:
        """Skip to the next value or bracket; return its first character, empty at the end."""
        while True:
            match = _BETWEEN.match(self._text, self.position)
            assert match is not None  # it matches the empty text
            self.position = match.end()
            if self.position < len(self._text):
                return self._text[self.position]
            if not self._more():
                return ""

    def line(self) -> int:
        """Return the line of `position`."""
        self._line += self._text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self._line

    def value(self) -> Any:
        """Return the value at `position`, and go beyond it."""
        n_bytes = _PIECE_BYTES
        while True:
            if n_bytes > _PIECE_BYTES:  # a large value
                check_values(self._path, self._text.encode(errors="replace"), self.line())
            try:
                value, end = self._decode(self._text, self.position)
                if self._text[end - 1] in '}]"' or not self._more(n_bytes):  # 12 may be 123
                    return self._checked(value, end)
            except RecursionError:
                return self._malformed("lists or objects are nested too deeply")
            except json.JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated string") or (
                    error.pos >= len(self._text) - _TAIL
                )
                if not is_cut or not self._more(n_bytes):
                    return self._malformed(f"no JSON: {error.msg}")
            n_bytes *= 2

    def _checked(self, value: Any, end: int) -> Any:
        self.position = end
        if self._is_suspect:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                return Malformed("not UTF-8")
        return value

    def _malformed(self, reason: str) -> Malformed:
        """Skip malformed text."""
        end = "\n{" if self._text[self.position] == "{" else "\n"
        begin = self.position + 1
        while (index := self._text.find(end, begin)) < 0:
            self.position = max(len(self._text) - 1, 0)
            if not self._more():
                self.position = len(self._text)
                return Malformed(reason)
            begin = 0
        self.position = index + 1
        return Malformed(reason)

    def _more(self, n_bytes: int = _PIECE_BYTES) -> bool:
        """Decode more of the file; drop the text before `position`. False at the end."""
        try:
            piece: bytes = self._stream.read(n_bytes)
        except OSError as error:
            raise broken_text_error(self._path, self.line(), error) from error
        pending, _ = self._decoder.getstate()
        try:
            more = self._decoder.decode(piece, final=not piece)
        except UnicodeDecodeError:
            self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
            more = self._decoder.decode(pending + piece, final=not piece)
            self._is_suspect = True
        if not more:
            return bool(piece) and self._more(n_bytes)
        self.line()
        self._is_suspect = self._is_suspect or _ESCAPED.search(more) is not None
        self._text = self._text[self.position :] + more
        self.position = self._counted = 0
        return True
