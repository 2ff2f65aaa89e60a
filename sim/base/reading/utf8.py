"""Stream of valid UTF-8: bytes that are none are marked, so that Arrow can read on.

Arrow decodes a row that has a wrong number of fields; on bytes that are no UTF-8 it would print a
traceback and give up the file.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import Any, Final

INVALID: Final = "\ufdd0"
"""Mark of a byte that is no UTF-8: a noncharacter, which Unicode keeps for such use in programs."""
_ESCAPED = re.compile(r"[\udc80-\udcff]")


class Utf8Stream(io.RawIOBase):
    """Stream of bytes in which `INVALID` stands for each byte that is no UTF-8."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._is_between = True  # no character has begun
        self._ready = b""

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size` (all if negative); empty at the end."""
        piece = b"?"
        while not self._ready and piece:
            piece = self._raw.read(size)
            self._ready = self._marked(piece)
        end = len(self._ready) if size < 0 else size
        content, self._ready = self._ready[:end], self._ready[end:]
        return content

    def _marked(self, piece: bytes) -> bytes:
        if self._is_between and piece.isascii():
            return piece
        text = self._decoder.decode(piece, final=not piece)
        self._is_between = not self._decoder.getstate()[0]
        try:
            return text.encode()
        except UnicodeEncodeError:
            return _ESCAPED.sub(INVALID, text).encode()
