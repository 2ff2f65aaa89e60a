"""The folder of a sweep: what it found, byte for byte the same however it got there."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from sim.base import files
from sim.base.arrays import Mask
from sim.base.columns import to_numpy
from sim.base.errors import InputError
from sweep.grid.config_tree import to_yaml
from sweep.store import checksums, sweep_list

CELLS, CONFIG, PROVENANCE = sweep_list.CELLS, "config.yaml", "provenance.json"
DIFF, FINDINGS, CONTRASTS = "changes.diff", "findings.parquet", "against_baseline.parquet"
TARGETS, EQUAL = "targets.parquet", "equal_capacity.parquet"
SETTINGS, IMPORTANCE = "settings.parquet", "importance.parquet"
TABLE, MARKDOWN, HTML = "table.md", "report.md", "report.html"
VERDICT = "verdict.json"
ROWS_A_GROUP = 16_384
"""Rows of a row group of ``cells.parquet``, all but the last's, whatever ran the cells."""
_ALWAYS = {"words", "config_dirs", "swept", "baseline", "metrics", "study"}
OF_REPORT = (VERDICT, CONTRASTS, EQUAL, FINDINGS, TABLE, MARKDOWN, HTML)
"""Files that are written anew from the others; see `sweep.driver.write_report`."""
_NEEDED = (CELLS, CONFIG, PROVENANCE, TABLE, MARKDOWN, HTML, VERDICT)
_OPTIONAL = (FINDINGS, CONTRASTS, TARGETS, EQUAL, SETTINGS, IMPORTANCE, DIFF)
_WAY_OUT = "running the sweep again writes it anew, from the cells that are cached"


class DamagedError(InputError):
    """A file of a sweep is not the one that was written."""


class SweepFolder:
    """``<results>/sweeps/<sweep id>``.

    Files are read only if they have the checksum that was recorded when they were written
    (`sweep.store.checksums`). Those that are written count together, with `commit`: a kill before
    it leaves a folder whose files do not match, which is written anew, never a mixture.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: dict[str, str | None] = {}  # checksums not recorded yet; None if deleted

    @classmethod
    def for_sweep(cls, results: Path, sweep: str) -> SweepFolder:
        """Folder of a sweep by its id."""
        return cls(results / "sweeps" / sweep)

    @classmethod
    def find(cls, results: Path, name: str | None) -> SweepFolder:
        """Folder of a sweep that is over, by id, name, or path; the latest begun if None."""
        if name is not None and (Path(name) / CELLS).is_file():
            return cls(Path(name).resolve())
        found = sweep_list.find(results, name)
        if not found.is_over:
            over = [each.sweep for each in sweep_list.sweeps(results) if each.is_over]
            others = f"; the latest that is over is {over[-1]}" if over else ""
            raise InputError(
                f"{found.sweep} is not over: `python -m sweep status` tells how far it is, the "
                f"command that began it goes on{others}",
                rule="not over",
            )
        return cls.for_sweep(results, found.sweep)

    @property
    def sweep(self) -> str:
        """Id of the sweep."""
        return self.path.name

    @property
    def results(self) -> Path:
        """Folder of all results."""
        return self.path.parent.parent

    def damaged(self) -> dict[str, str]:
        """Return what is wrong with each file that is missing, or not the one written, by name."""
        recorded = self._recorded()
        there = [name for name in _OPTIONAL if name in recorded or (self.path / name).exists()]
        reasons = {name: self._reason(name, recorded.get(name)) for name in (*_NEEDED, *there)}
        return {name: reason for name, reason in reasons.items() if reason}

    def is_whole(self) -> bool:
        """Tell whether every file is there, and the one that was written."""
        return not self.damaged()

    def is_recorded(self, name: str, content: bytes) -> bool:
        """Tell whether a content has the checksum of a file; also if none is recorded."""
        checksum = hashlib.sha256(content).hexdigest()
        return self._recorded().get(name, checksum) == checksum

    def _recorded(self) -> dict[str, str]:
        """Checksums by name, those that are not recorded yet among them."""
        recorded = {**checksums.read(self.path), **self._pending}
        known_names = {*_NEEDED, *_OPTIONAL}  # others come of damage
        return {name: c for name, c in recorded.items() if c is not None and name in known_names}

    def _reason(self, name: str, checksum: str | None) -> str:
        """Word what is wrong with a file; '' if nothing is."""
        path = self.path / name
        if not path.exists():
            return "it is missing"
        if checksum is None:
            return f"{checksums.NAME} has no checksum of it"
        if not checksums.is_intact(path, checksum):
            return f"it is damaged, or was changed: its checksum is not that in {checksums.NAME}"
        return ""

    def cells(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read ``cells.parquet``, or some of its columns: of very many cells its texts are long."""
        with self._parquet(CELLS) as parquet:
            return parquet.read(columns, use_threads=False)

    def schema(self) -> pa.Schema:
        """Names and types of the columns of ``cells.parquet``."""
        with self._parquet(CELLS) as parquet:
            return parquet.schema_arrow

    def parts(
        self, repeating: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Read ``cells.parquet`` row group by row group; what is `repeating` as a dictionary."""
        with self._parquet(CELLS, repeating) as parquet:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns, use_threads=False)

    def row(self, at: int) -> dict[str, Any]:
        """Read one row of ``cells.parquet``: its row group alone."""
        with self._parquet(CELLS) as parquet:
            group = 0
            while at >= (n_rows := parquet.metadata.row_group(group).num_rows):
                at, group = at - n_rows, group + 1
            part = parquet.read_row_group(group, use_threads=False)
            found: dict[str, Any] = part.slice(at, 1).to_pylist()[0]
            return found

    @contextlib.contextmanager
    def replacing_cells(self, parts: Iterable[pa.Table]) -> Iterator[None]:
        """Write ``cells.parquet``, which counts once all that goes with it is written."""
        with files.atomic_write(self.path / CELLS) as file:
            sink = checksums.HashingWriter(file)
            writer: pq.ParquetWriter | None = None
            for part in parts:
                if writer is None:
                    kept = {"compression": "zstd", "use_dictionary": False}
                    writer = pq.ParquetWriter(sink, part.schema, **kept)
                writer.write_table(part, row_group_size=ROWS_A_GROUP)
                del part  # before the next is made
            assert writer is not None
            writer.close()
            yield
            self._pending[CELLS] = sink.checksum
            self.commit()

    def failed(self) -> Mask:
        """Tell of each cell whether it failed."""
        import pyarrow.compute as pc  # 0.05 s to import

        status = self.cells(["status"])["status"].combine_chunks()
        return to_numpy(pc.equal(status, "failed"))

    def verdict(self) -> list[dict[str, Any]]:
        """Read ``verdict.json``: what is best, an entry a trace and capacity; empty if none is."""
        content = self._optional(VERDICT)
        entries = [] if content is None else self._parsed(VERDICT, json.loads, content)
        if not isinstance(entries, list):
            return []
        return [entry for entry in entries if isinstance(entry, dict)]

    def sentences(self) -> list[str]:
        """Return what was looked for and found, else a sentence of each trace and capacity."""
        found = dict.fromkeys(line for each in self.verdict() for line in each.get("answer", ()))
        return list(found) or [
            str(each["sentence"]) for each in self.verdict() if each.get("sentence")
        ]

    def targets(self) -> pa.Table | None:
        """Read ``targets.parquet``: what capacity meets a target; None if none was asked for."""
        return self.table(TARGETS)

    def config(self) -> dict[str, Any]:
        """Read ``config.yaml``."""
        config = self._parsed(CONFIG, _yaml, self._content(CONFIG))
        if not isinstance(config, dict) or not config.keys() >= _ALWAYS:
            raise self.error(CONFIG, "it is of another version")
        return config

    def provenance(self) -> dict[str, Any]:
        """Read ``provenance.json``."""
        content = self._content(PROVENANCE)
        provenance: dict[str, Any] = self._parsed(PROVENANCE, json.loads, content)
        return provenance

    def diff(self) -> str:
        """Read ``changes.diff``: what the code had that its commit has not; empty if nothing."""
        content = self._optional(DIFF)
        return "" if content is None else content.decode()

    def findings(self) -> pa.Table | None:
        """Read ``findings.parquet``; None if the sweep has none."""
        return self.table(FINDINGS)

    def contrasts(self) -> pa.Table | None:
        """Read ``against_baseline.parquet``; None if the sweep has no baseline."""
        return self.table(CONTRASTS)

    def table(self, name: str) -> pa.Table | None:
        """Read a table, such as `TARGETS`; None if the sweep has none of that name."""
        if not self._is_there(name):
            return None
        with self._parquet(name) as parquet:
            return parquet.read(use_threads=False)

    def text(self, name: str) -> str:
        """Read a text, such as `TABLE`."""
        return self._content(name).decode()

    def error(self, name: str, reason: str) -> DamagedError:
        """Make the error of a file that can't be read."""
        return DamagedError(f"{reason}; {_WAY_OUT}", file=self.path / name)

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        """Open a file that has its checksum."""
        path, checksum = self.path / name, self._recorded().get(name)
        if checksum is None or not path.exists():
            raise self.error(name, self._reason(name, checksum))
        with path.open("rb") as file:
            try:
                is_intact = checksums.matches(path, file, checksum)
            except OSError as error:  # a disk that fails names no file
                raise self.error(name, f"it can't be read ({error.strerror})") from error
            if not is_intact:
                raise self.error(name, self._reason(name, checksum))
            yield file

    @contextlib.contextmanager
    def _parquet(self, name: str, repeating: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
        try:
            # not pq.read_table: that imports pyarrow.dataset and pandas, half a second; nothing is
            # read ahead, as Arrow's threads may then let go of Python's bytes while Python ends
            with (
                self._opened(name) as file,
                pq.ParquetFile(file, read_dictionary=[*repeating], pre_buffer=False) as parquet,
            ):
                yield parquet
        except pa.ArrowException as error:
            raise self.error(name, "it can't be read") from error

    def _content(self, name: str) -> bytes:
        with self._opened(name) as file:
            return file.read()

    def _is_there(self, name: str) -> bool:
        """Tell whether a file is there, or should be."""
        return (self.path / name).exists() or name in self._recorded()

    def _optional(self, name: str) -> bytes | None:
        return self._content(name) if self._is_there(name) else None

    def _parsed(self, name: str, parse: Callable[[bytes], Any], content: bytes) -> Any:
        try:
            return parse(content)
        except (ValueError, yaml.YAMLError) as error:
            raise self.error(name, "it can't be read") from error

    def replace(self, name: str, content: pa.Table | None) -> None:
        """Replace a table, such as `CELLS`; None deletes it."""
        if content is None:
            self._delete(name)
            return
        sink = pa.BufferOutputStream()
        pq.write_table(content, sink, compression="zstd", use_dictionary=False)
        self._write(name, sink.getvalue().to_pybytes())

    def replace_text(self, name: str, text: str) -> None:
        """Replace a text, such as `TABLE`."""
        self._write(name, text.encode())

    def replace_json(self, name: str, content: Any) -> Any:
        """Replace a JSON file, such as `VERDICT`; return the content as it will be read back."""
        text = files.json_text(content)
        self._write(name, text.encode())
        return json.loads(text)

    def replace_origin(
        self, config: Mapping[str, Any], provenance: Mapping[str, Any], diff: str
    ) -> dict[str, Any]:
        """Replace what says where the cells come from; return the provenance as it is read."""
        self.replace_text(CONFIG, to_yaml(config))
        kept: dict[str, Any] = self.replace_json(PROVENANCE, provenance)
        if diff:
            self.replace_text(DIFF, diff)
        else:
            self._delete(DIFF)
        return kept

    def commit(self) -> None:
        """Record the checksums of all that was replaced: from now on it counts."""
        checksums.write(self.path, self._recorded())
        self._pending.clear()

    def _write(self, name: str, content: bytes) -> None:
        files.write_bytes(self.path / name, content)
        self._pending[name] = hashlib.sha256(content).hexdigest()

    def _delete(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)
        self._pending[name] = None


def _yaml(text: bytes) -> Any:
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
