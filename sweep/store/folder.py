"""Folder of a sweep: its results, byte for byte the same however they were computed."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from sim.base import files
from sim.base.arrays import Mask
from sim.base.columns import to_numpy
from sim.base.errors import InputError
from sweep.grid import plugins, yaml_aliases
from sweep.grid.config_tree import to_yaml
from sweep.store import checksums, plain_data, sweep_list

CELLS, CONFIG, PROVENANCE = sweep_list.CELLS, "config.yaml", "provenance.json"
DIFF, FINDINGS, CONTRASTS = "changes.diff", "findings.parquet", "against_baseline.parquet"
DONE_JOBS = "done_jobs.parquet"
"""Metrics over the jobs done under every policy, where some failed (`sweep.stats.done_jobs`)."""
TABLE, MARKDOWN, HTML = "table.md", "report.md", "report.html"
VERDICT, ANSWER = "verdict.json", "answer.json"
READ = "read"
"""Key of ``answer.json``: the logs that were read, and what was left out of each."""
TRUST = "trust"
"""Key of ``answer.json``: how far a forecast from a real system's log is to be trusted."""
ROWS_A_GROUP = 16_384
"""Rows of each row group of ``cells.parquet`` except the last, whatever ran the cells."""
_REQUIRED_KEYS = {"words", "config_dirs", "swept", "baseline", "metrics", "study"}
_REQUIRED_FILES = (CELLS, CONFIG, PROVENANCE, TABLE, MARKDOWN, HTML, VERDICT)
_OPTIONAL_FILES = (FINDINGS, CONTRASTS, DONE_JOBS, DIFF, ANSWER)
WAY_OUT = "running the same sweep again rewrites it from the cached cells"


def report_files() -> tuple[str, ...]:
    """Return the files that are rewritten from the others (`sweep.driver.write_report`)."""
    return (VERDICT, ANSWER, CONTRASTS, *_added_files(), TABLE, MARKDOWN, HTML)


def strategy_files() -> tuple[str, ...]:
    """Return the files that strategies make from the results of cells."""
    return plugins.constants(plugins.STRATEGIES, "FILES")


def _optional_files() -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_OPTIONAL_FILES, *_added_files(), *strategy_files())))


def _added_files() -> tuple[str, ...]:
    """Return the files that sections add, made anew with the report or once from all cells."""
    return tuple(n for c in ("REPORT_FILES", "TABLES") for n in plugins.constants("sections", c))


class DamagedError(InputError):
    """A file of a sweep is not the one that was written."""


class SweepFolder:
    """``<results>/sweeps/<sweep id>``.

    A file is read only if it has the checksum that was recorded when it was written
    (`sweep.store.checksums`). Written files count together, with `commit`: a kill before it leaves
    a folder whose files do not match, which is rewritten as a whole, never a mixture.
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
        """Find the folder of a finished sweep by id, name, or path; of the latest begun if None."""
        if name is not None and (Path(name) / CELLS).is_file():
            return cls(Path(name).resolve())
        entry = sweep_list.find(results, name)
        if not entry.is_finished:
            finished = [other.sweep for other in sweep_list.sweeps(results) if other.is_finished]
            hint = f"; the latest finished sweep is {finished[-1]}" if finished else ""
            raise InputError(
                f"{entry.sweep} is not finished: `python -m sweep status` shows its progress, the "
                f"command that started it resumes it{hint}",
                rule="not over",
            )
        return cls.for_sweep(results, entry.sweep)

    @property
    def sweep(self) -> str:
        """Id of the sweep."""
        return self.path.name

    @property
    def results(self) -> Path:
        """Folder of all results."""
        return self.path.parent.parent

    def damaged(self) -> dict[str, str]:
        """Return the reason for each file that is missing or damaged, by name."""
        recorded = self._recorded()
        optional = [
            name for name in _optional_files() if name in recorded or (self.path / name).exists()
        ]
        reasons = {
            name: self._reason(name, recorded.get(name)) for name in (*_REQUIRED_FILES, *optional)
        }
        return {name: reason for name, reason in reasons.items() if reason}

    def is_whole(self) -> bool:
        """Tell whether every file is there and intact."""
        return not self.damaged()

    def is_recorded(self, name: str, content: bytes) -> bool:
        """Tell whether a content has the checksum of a file, or none is recorded."""
        checksum = hashlib.sha256(content).hexdigest()
        return self._recorded().get(name, checksum) == checksum

    def _recorded(self) -> dict[str, str]:
        """Checksums by name, including those that are not recorded yet."""
        recorded = {**checksums.read(self.path), **self._pending}
        known_names = {*_REQUIRED_FILES, *_optional_files()}  # other names come from damage
        return {name: c for name, c in recorded.items() if c is not None and name in known_names}

    def _reason(self, name: str, checksum: str | None) -> str:
        """Describe why a file can't be used; '' if it can."""
        path = self.path / name
        if not path.exists():
            return "it is missing"
        if checksum is None:
            return f"{checksums.NAME} has no checksum for it"
        if not checksums.is_intact(path, checksum):
            return f"it is damaged or was edited: its checksum differs from {checksums.NAME}"
        return ""

    def cells(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read ``cells.parquet``, or some columns: the long texts may not fit into memory."""
        with self._parquet(CELLS) as parquet:
            return parquet.read(columns, use_threads=False)

    def schema(self) -> pa.Schema:
        """Names and types of the columns of ``cells.parquet``."""
        with self._parquet(CELLS) as parquet:
            return parquet.schema_arrow

    def parts(
        self, repeating: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Read ``cells.parquet`` row group by row group; `repeating` columns as dictionaries."""
        with self._parquet(CELLS, repeating) as parquet:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns, use_threads=False)

    def row(self, index: int) -> dict[str, Any]:
        """Read one row of ``cells.parquet``: its row group alone."""
        with self._parquet(CELLS) as parquet:
            group = 0
            while index >= (n_rows := parquet.metadata.row_group(group).num_rows):
                index, group = index - n_rows, group + 1
            part = parquet.read_row_group(group, use_threads=False)
            row: dict[str, Any] = part.slice(index, 1).to_pylist()[0]
            return row

    @contextlib.contextmanager
    def replacing_cells(self, parts: Iterable[pa.Table]) -> Iterator[None]:
        """Write ``cells.parquet``; it counts once all that goes with it is written."""
        with files.atomic_write(self.path / CELLS) as file:
            sink = checksums.HashingWriter(file)
            writer: pq.ParquetWriter | None = None
            for part in parts:
                if writer is None:
                    options = {"compression": "zstd", "use_dictionary": False}
                    writer = pq.ParquetWriter(sink, part.schema, **options)
                writer.write_table(part, row_group_size=ROWS_A_GROUP)
                del part  # before the next is made
            assert writer is not None
            writer.close()
            yield
            self._pending[CELLS] = sink.checksum
            self.commit()

    def failed(self) -> Mask:
        """Flag the cells that failed."""
        import pyarrow.compute as pc  # 0.05 s to import

        status = self.cells(["status"])["status"].combine_chunks()
        return to_numpy(pc.equal(status, "failed"))

    def verdict(self) -> list[dict[str, Any]]:
        """Read ``verdict.json``, an entry per trace and capacity; empty if there is none."""
        content = self._optional(VERDICT)
        entries = [] if content is None else self._parsed(VERDICT, plain_data.loads, content)
        if not isinstance(entries, list):
            return []
        return [entry for entry in entries if isinstance(entry, dict)]

    def answer(self) -> dict[str, list[str]]:
        """Read the sentences of the report's first screen from ``answer.json``; empty without."""
        fields = self._answer().items()
        return {part: lines for part, lines in fields if part not in (READ, TRUST)}

    def trust(self) -> dict[str, Any]:
        """Read from ``answer.json`` how far a forecast from a log is to be trusted; empty else.

        ``backtest_error``, ``sentence`` and ``cautions`` (`sweep.questions.backtest.trust`).
        """
        return dict(self._answer().get(TRUST) or {})

    def logs_read(self) -> list[dict[str, Any]]:
        """Read from ``answer.json`` what was left out of each log (`sweep.report.reading`)."""
        return list(self._answer().get(READ, ()))

    def _answer(self) -> dict[str, Any]:
        content = self._optional(ANSWER)
        return {} if content is None else dict(self._parsed(ANSWER, plain_data.loads, content))

    def sentences(self) -> list[str]:
        """Return the answers of a search, else the verdict's sentence by trace and capacity.

        The first says how far a forecast is to be trusted, if it is one.
        """
        answers = dict.fromkeys(
            line for entry in self.verdict() for line in entry.get("answer", ())
        )
        sentences = [str(entry["sentence"]) for entry in self.verdict() if entry.get("sentence")]
        trust = filter(None, [self.trust().get("sentence")])
        return list(answers) or [*trust, *sentences]

    def config(self) -> dict[str, Any]:
        """Read ``config.yaml``."""
        content = self._content(CONFIG)
        self._parsed(CONFIG, partial(yaml_aliases.check_text, file=self.path / CONFIG), content)
        config = self._parsed(CONFIG, _load_yaml, content)
        if not isinstance(config, dict) or not config.keys() >= _REQUIRED_KEYS:
            raise self.error(CONFIG, "it was written by another version")
        return config

    def provenance(self) -> dict[str, Any]:
        """Read ``provenance.json``."""
        content = self._content(PROVENANCE)
        provenance: dict[str, Any] = self._parsed(PROVENANCE, plain_data.loads, content)
        return provenance

    def diff(self) -> str:
        """Read ``changes.diff``: uncommitted changes of the code; empty if there are none."""
        content = self._optional(DIFF)
        return "" if content is None else content.decode()

    def findings(self) -> pa.Table | None:
        """Read ``findings.parquet``; None if the sweep has none."""
        return self.table(FINDINGS)

    def contrasts(self) -> pa.Table | None:
        """Read ``against_baseline.parquet``; None if the sweep has no baseline."""
        return self.table(CONTRASTS)

    def table(self, name: str) -> pa.Table | None:
        """Read a table, such as `CONTRASTS`; None if the sweep has none of that name."""
        if not self._exists(name):
            return None
        with self._parquet(name) as parquet:
            return parquet.read(use_threads=False)

    def read_json(self, name: str) -> Any:
        """Read a JSON file of a plug-in; None if the sweep has none of that name."""
        content = self._optional(name)
        return None if content is None else self._parsed(name, plain_data.loads, content)

    def text(self, name: str) -> str:
        """Read a text, such as `TABLE`."""
        return self._content(name).decode()

    def error(self, name: str, reason: str) -> DamagedError:
        """Build the error of a file that can't be read."""
        return DamagedError(f"{reason}; {WAY_OUT}", file=self.path / name)

    @contextlib.contextmanager
    def _verified(self, name: str) -> Iterator[BinaryIO]:
        """Open a file after checking its checksum."""
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
                self._verified(name) as file,
                pq.ParquetFile(file, read_dictionary=[*repeating], pre_buffer=False) as parquet,
            ):
                yield parquet
        except pa.ArrowException as error:
            raise self.error(name, "it can't be read") from error

    def _content(self, name: str) -> bytes:
        with self._verified(name) as file:
            return file.read()

    def _exists(self, name: str) -> bool:
        """Tell whether a file exists, or should."""
        return (self.path / name).exists() or name in self._recorded()

    def _optional(self, name: str) -> bytes | None:
        return self._content(name) if self._exists(name) else None

    def _parsed(self, name: str, parse: Callable[[bytes], Any], content: bytes) -> Any:
        try:
            return parse(content)
        except InputError:
            raise
        except (ValueError, yaml.YAMLError) as error:
            raise self.error(name, "it can't be read") from error

    def replace(self, name: str, content: pa.Table | Mapping[str, Any] | None) -> None:
        """Replace a table, such as `CELLS`, or a JSON file by a mapping; None deletes it."""
        if content is None:
            self._delete(name)
            return
        if isinstance(content, Mapping):
            self.replace_json(name, content)
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
        """Replace configuration, provenance and diff; return the provenance as it is read back."""
        self.replace_text(CONFIG, to_yaml(config))
        stored: dict[str, Any] = self.replace_json(PROVENANCE, provenance)
        if diff:
            self.replace_text(DIFF, diff)
        else:
            self._delete(DIFF)
        return stored

    def commit(self) -> None:
        """Record the checksums of all replaced files: from now on they count."""
        checksums.write(self.path, self._recorded())
        self._pending.clear()

    def _write(self, name: str, content: bytes) -> None:
        files.write_bytes(self.path / name, content)
        self._pending[name] = hashlib.sha256(content).hexdigest()

    def _delete(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)
        self._pending[name] = None


def _load_yaml(text: bytes) -> Any:
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
