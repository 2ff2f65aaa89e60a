"""Parser of ``slurm.conf``, ``gres.conf`` and ``topology.conf``.

Source: the manuals https://slurm.schedmd.com/slurm.conf.html, gres.conf.html and
topology.conf.html. Keys are case-insensitive and are stored in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sim.base.errors import InputError
from sim.base.reading import open_text, read_bytes
from sim.traces.slurm_site.hosts import expand

Record = dict[str, str]
"""Values of a line or record, by key in lower case."""
DEFAULT = "DEFAULT"
MAX_DEPTH = 10
"""Deepest nesting of included files."""
PACKED = ("", ".gz", ".bz2", ".xz", ".zst")
"""Endings of a file, plain or compressed."""
_PAIR = re.compile(r'([A-Za-z0-9_/]+)\s*=\s*("[^"]*"|\S*)')
_RECORDS = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "slurmctldhost")


@dataclass
class Conf:
    """Contents of a ``slurm.conf``.

    Attributes
    ----------
    options : dict of str to str
        Global options by key in lower case.
    names : dict of str to str
        Spelling of each key of `options` in the file.
    nodes, partitions, node_sets : dict of str to Record
        Records by name, with the values of the ``DEFAULT`` lines before them.
    missing : list of str
        Included files that are not in the folder.
    unread : list of str
        Lines that are not of the form ``key=value``.
    """

    options: Record = field(default_factory=dict)
    names: Record = field(default_factory=dict)
    nodes: dict[str, Record] = field(default_factory=dict)
    partitions: dict[str, Record] = field(default_factory=dict)
    node_sets: dict[str, Record] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def read_slurm_conf(path: Path) -> Conf:
    """Read a ``slurm.conf`` and the files that it includes.

    An included file is looked for beside it, by its path and then by its name alone.

    Raises
    ------
    InputError
        Of a node expression, or of files that include each other in a circle.
    """
    conf = Conf()
    node_default: Record = {}
    partition_default: Record = {}
    for line in _lines(path, path.parent, conf, 0):
        pairs = _pairs(line)
        if not pairs:
            conf.unread.append(line)
            continue
        first, name = next((key.lower(), value) for key, value in pairs)
        record = {key.lower(): value for key, value in pairs}
        if first == "nodename":
            if name == DEFAULT:
                node_default |= _without(record, "nodename")
                continue
            for node in expand(name):
                conf.nodes[node] = {**node_default, **_without(record, "nodename")}
        elif first == "partitionname":
            if name == DEFAULT:
                partition_default |= _without(record, "partitionname")
                continue
            known = conf.partitions.get(name, partition_default)
            conf.partitions[name] = {**known, **_without(record, "partitionname")}
        elif first == "nodeset":
            conf.node_sets[name] = _without(record, "nodeset")
        elif first in _RECORDS:
            conf.options[first] = line.partition("=")[2].strip()
            conf.names[first] = pairs[0][0]
        else:
            conf.options |= record
            conf.names |= {key.lower(): key for key, _ in pairs}
    return conf


def read_records(path: Path) -> list[Record]:
    """Return the records of a ``gres.conf`` or ``topology.conf``, a mapping a line."""
    conf = Conf()
    lines = _lines(path, path.parent, conf, 0)
    return [{key.lower(): value for key, value in _pairs(line)} for line in lines]


def gres_count(record: Record) -> int:
    """Return the devices of a record: its ``count``, or the files that it names."""
    if record.get("count", "").isdecimal():
        return int(record["count"])
    return len(expand(record["file"])) if record.get("file") else 1


def packed(path: Path) -> Path | None:
    """Return a file or its compressed form, None if there is neither."""
    paths = [path.with_name(path.name + end) for end in PACKED]
    return next((path for path in paths if path.is_file()), None)


def is_empty(path: Path) -> bool:
    """Tell whether a file, plain or compressed, has no content."""
    if path.stat().st_size == 0:
        return True
    with open_text(path) as stream:
        try:
            return not stream.read(1)
        except OSError:  # its reader says what is wrong with it
            return False


def _lines(path: Path, folder: Path, conf: Conf, depth: int) -> Iterator[str]:
    """Yield lines without comments, with continued ones joined and included files in place."""
    if depth > MAX_DEPTH:
        raise InputError(
            f"files include each other more than {MAX_DEPTH} deep", file=path, rule="include"
        )
    joined = ""
    for raw in read_bytes(path).decode("utf-8", "replace").splitlines():
        line = re.sub(r"(?<!\\)#.*", "", raw).rstrip()
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        line, joined = (joined + line).strip(), ""
        include = re.match(r"include\s+(\S+)$", line, re.IGNORECASE)
        if include:
            yield from _included(include[1], path, folder, conf, depth)
        elif line:
            yield line
    if joined.strip():
        yield joined.strip()


def _included(name: str, path: Path, folder: Path, conf: Conf, depth: int) -> Iterator[str]:
    for beside in (folder / name.lstrip("/"), folder / Path(name).name):
        candidate = packed(beside)
        if candidate is not None:
            if not is_empty(candidate):
                yield from _lines(candidate, folder, conf, depth + 1)
            return
    conf.missing.append(name)


def _pairs(line: str) -> list[tuple[str, str]]:
    return [(key, value.strip('"').replace("\\#", "#")) for key, value in _PAIR.findall(line)]


def _without(record: Record, key: str) -> Record:
    return {name: value for name, value in record.items() if name != key}
