"""Mutations of a file: of its bytes, its fields, its lines and its end."""

from __future__ import annotations

import random
import re
import zlib

_TOKENS = (
    *(b"", b"-1", b"0", b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-320", b"9" * 19),
    *(b"2147483647", b"2147483648", b"9223372036854775807", b"0.1", b"1_0", b"0x1", b"None"),
    *(b"null", b"true", b"[]", b"{}", b'""', b"[[]]", b'"a"', b"a=b", b"range(0,3)", b"${seed}"),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\0", b"\r", b"\r\n", b"\n", b",", b'"', b"'", b"\\", b" "),
    *("é".encode(), "\u2028".encode(), "١".encode(), "²".encode(), b"\xed\xa0\x80", b"PAR1"),
)
_FIELD = re.compile(rb"[\w.*/:+-]+")
MAX_MUTATIONS = 4


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Apply one to four random mutations to a file."""
    for _ in range(rng.randint(1, MAX_MUTATIONS)):
        content = rng.choice(_WAYS)(content, rng)
    return content


def _field(content: bytes, rng: random.Random) -> bytes:
    """Replace a word or number by an unusual token."""
    matches = list(_FIELD.finditer(content))
    if not matches:
        return content + rng.choice(_TOKENS)
    match = rng.choice(matches)
    return content[: match.start()] + rng.choice(_TOKENS) + content[match.end() :]


def _insert(content: bytes, rng: random.Random) -> bytes:
    position = rng.randint(0, len(content))
    return content[:position] + rng.choice(_TOKENS) + content[position:]


def _flip(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return b"\0"
    position = rng.randrange(len(content))
    flipped = bytes([content[position] ^ (1 << rng.randrange(8))])
    return content[:position] + flipped + content[position + 1 :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randint(0, len(content))]


def _without(content: bytes, rng: random.Random) -> bytes:
    first, last = sorted(rng.randint(0, len(content)) for _ in range(2))
    return content[:first] + content[last:]


def _lines(content: bytes, rng: random.Random) -> bytes:
    """Repeat, drop or swap lines."""
    lines = content.split(b"\n")
    position, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.randrange(3)
    if action == 0:
        lines.insert(other, lines[position])
    elif action == 1:
        del lines[position]
    else:
        lines[position], lines[other] = lines[other], lines[position]
    return b"\n".join(lines)


def _gzip(content: bytes, rng: random.Random) -> bytes:
    """Compress the file; truncate it in half of the cases."""
    pack = zlib.compressobj(wbits=31)
    packed = pack.compress(content) + pack.flush()
    return packed if rng.random() < 0.5 else packed[: rng.randint(0, len(packed))]


_WAYS = (_field, _field, _field, _insert, _flip, _cut, _without, _lines, _gzip)
