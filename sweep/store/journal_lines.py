"""Lines of a journal: one JSON object each, ending with the CRC-32 of the text before it."""

from __future__ import annotations

import re
import zlib

_CRC = re.compile(rb', "crc": "([0-9a-f]{8})"\}\n?')
_CRC_BYTES = len(', "crc": "01234567"}\n')


def with_crc(line: str) -> str:
    """Append its CRC-32 to a line, the text of a JSON object."""
    return f'{line[:-1]}, "crc": "{zlib.crc32(line[:-1].encode()):08x}"}}'


def is_intact(line: bytes) -> bool:
    """Tell whether a line ends with the CRC-32 of the text before it."""
    begin = len(line) - _CRC_BYTES + (not line.endswith(b"\n"))
    match = _CRC.fullmatch(line, max(0, begin))
    return match is not None and zlib.crc32(line[:begin]) == int(match[1], 16)
