"""The folder of a sweep: what it found, byte for byte the same however it got there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from sim.base import files
from sim.base.arrays import Mask
from sim.base.columns import values_of
from sim.base.errors import InputError
from sweep.grid.config_tree import to_yaml
from sweep.store import known

CELLS, CONFIG, PROVENANCE = known.CELLS, "config.yaml", "provenance.json"
DIFF, FINDINGS, CONTRASTS = "changes.diff", "findings.parquet", "against_baseline.parquet"
TARGETS, EQUAL = "targets.parquet", "equal_capacity.parquet"
SETTINGS, IMPORTANCE = "settings.parquet", "importance.parquet"
TABLE, MARKDOWN, HTML = "table.md", "report.md", "report.html"
VERDICT = "verdict.json"
ROWS_A_GROUP = 16_384
"""Rows of a row group of ``cells.parquet``, all but the last's, whatever ran the cells."""
_ALWAYS = {"words", "config_dirs", "swept", "baseline", "metrics", "study"}
_DAMAGED = "it is damaged; running the sweep again writes it anew, from the cells that are cached"


class SweepFolder:
    """``<results>/sweeps/<sweep id>``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, results: Path, sweep: str) -> SweepFolder:
        """Folder of a sweep by its id."""
        return cls(results / "sweeps" / sweep)

    @classmethod
    def find(cls, results: Path, name: str | None) -> SweepFolder:
        """Folder of a sweep that is over, by id, name, or path; the latest begun if None."""
        if name is not None and (Path(name) / CELLS).is_file():
            return cls(Path(name).resolve())
        found = known.find(results, name)
        if not found.is_over:
            over = [each.sweep for each in known.sweeps(results) if each.is_over]
            others = f"; the latest that is over is {over[-1]}" if over else ""
            raise InputError(
                f"{found.sweep} is not over: `python -m sweep status` tells how far it is, the "
                f"command that began it goes on{others}",
                rule="not over",
            )
        return cls.of(results, found.sweep)

    @property
    def sweep(self) -> str:
        """Id of the sweep."""
        return self.path.name

    @property
    def results(self) -> Path:
        """Folder of all results."""
        return self.path.parent.parent

    def is_whole(self) -> bool:
        """Tell whether every file is there, and the cells can be read."""
        names = (CELLS, CONFIG, PROVENANCE, TABLE, MARKDOWN, HTML, VERDICT)
        if not all((self.path / name).is_file() for name in names):
            return False
        try:
            return sum(part.num_rows for part in self.parts()) > 0 and bool(self.config())
        except (OSError, InputError):
            return False

    def cells(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read ``cells.parquet``, or some of its columns: of very many cells its texts are long."""
        return _table(self.path / CELLS, columns)

    def schema(self) -> pa.Schema:
        """Names and types of the columns of ``cells.parquet``."""
        with _opened(self.path / CELLS) as parquet:
            return parquet.schema_arrow

    def parts(
        self, repeating: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Read ``cells.parquet`` row group by row group; what is `repeating` as a dictionary."""
        with _opened(self.path / CELLS, repeating) as parquet:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns, use_threads=False)

    def row(self, at: int) -> dict[str, Any]:
        """Read one row of ``cells.parquet``: its row group alone."""
        with _opened(self.path / CELLS) as parquet:
            group = 0
            while at >= (n_rows := parquet.metadata.row_group(group).num_rows):
                at, group = at - n_rows, group + 1
            part = parquet.read_row_group(group, use_threads=False)
            found: dict[str, Any] = part.slice(at, 1).to_pylist()[0]
            return found

    @contextlib.contextmanager
    def replacing_cells(self, parts: Iterable[pa.Table]) -> Iterator[None]:
        """Write ``cells.parquet``, which counts once all that goes with it is written."""
        with files.replacing(self.path / CELLS) as file:
            writer: pq.ParquetWriter | None = None
            for part in parts:
                if writer is None:
                    kept = {"compression": "zstd", "use_dictionary": False}
                    writer = pq.ParquetWriter(file, part.schema, **kept)
                writer.write_table(part, row_group_size=ROWS_A_GROUP)
                del part  # before the next is made
            assert writer is not None
            writer.close()
            yield

    def failed(self) -> Mask:
        """Tell of each cell whether it failed."""
        import pyarrow.compute as pc  # 0.05 s to import

        status = self.cells(["status"])["status"].combine_chunks()
        return values_of(pc.equal(status, "failed"))

    def verdict(self) -> list[dict[str, Any]]:
        """Read ``verdict.json``: what is best, an entry a trace and capacity; empty if none is."""
        found = files.read_json(self.path / VERDICT)
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

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
        file = self.path / CONFIG
        try:
            text = file.read_text(encoding="utf-8")
            config = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(_DAMAGED, file=file) from error
        if not isinstance(config, dict) or not config.keys() >= _ALWAYS:
            raise InputError(_DAMAGED, file=file)
        return config

    def provenance(self) -> dict[str, Any]:
        """Read ``provenance.json``."""
        provenance: dict[str, Any] = files.read_json(self.path / PROVENANCE) or {}
        return provenance

    def findings(self) -> pa.Table | None:
        """Read ``findings.parquet``; None if the sweep has none."""
        return self.table(FINDINGS)

    def contrasts(self) -> pa.Table | None:
        """Read ``against_baseline.parquet``; None if the sweep has no baseline."""
        return self.table(CONTRASTS)

    def table(self, name: str) -> pa.Table | None:
        """Read a table, such as `TARGETS`; None if the sweep has none of that name."""
        file = self.path / name
        return _table(file) if file.is_file() else None

    def replace(self, name: str, content: pa.Table | None) -> None:
        """Replace a table, such as `CELLS`; None deletes it."""
        if content is None:
            (self.path / name).unlink(missing_ok=True)
            return
        sink = pa.BufferOutputStream()
        pq.write_table(content, sink, compression="zstd", use_dictionary=False)
        files.write_bytes(self.path / name, sink.getvalue().to_pybytes())

    def write_origin(
        self, config: Mapping[str, Any], provenance: Mapping[str, Any], diff: str
    ) -> dict[str, Any]:
        """Replace what says where the cells come from; return the provenance as it is read."""
        files.write_text(self.path / CONFIG, to_yaml(config))
        kept: dict[str, Any] = files.write_json(self.path / PROVENANCE, provenance)
        if diff:
            files.write_text(self.path / DIFF, diff)
        else:
            (self.path / DIFF).unlink(missing_ok=True)
        return kept


def _table(file: Path, columns: Sequence[str] | None = None) -> pa.Table:
    with _opened(file) as parquet:
        return parquet.read(columns, use_threads=False)


@contextlib.contextmanager
def _opened(file: Path, repeating: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    try:
        # not pq.read_table: that imports pyarrow.dataset and pandas, half a second
        with pq.ParquetFile(file, read_dictionary=[*repeating]) as parquet:
            yield parquet
    except pa.ArrowException as error:
        raise InputError(_DAMAGED, file=file) from error
