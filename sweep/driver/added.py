"""Additions of plug-ins to a finished sweep's folder (`sweep.grid.plugins`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from sweep.grid import plugins
from sweep.grid.plugins import SECTIONS
from sweep.report.contribution import Contribution, Finished, joined
from sweep.report.section import Section
from sweep.stats import reading
from sweep.store.cache import Cache
from sweep.store.folder import SweepFolder


def replace_tables(
    folder: SweepFolder,
    parts: Callable[[], Iterable[pa.Table]],
    config: Mapping[str, Any],
    cache: Cache,
) -> None:
    """Write the tables that are made once from all cells."""
    for tables in plugins.results(SECTIONS, "tables", parts, config, cache):
        for name, table in tables.items():
            folder.replace(name, table)


def contribution(sweep: Finished) -> Contribution:
    """Join what plug-ins add to a sweep's report and verdict."""
    added = joined(plugins.results(SECTIONS, "contribute", sweep))
    sections = _with_caveats(added.sections, sweep.config, sweep.provenance)
    return dataclasses.replace(added, sections=tuple(sections))


def build_sections(
    folder: SweepFolder, config: Mapping[str, Any], provenance: Mapping[str, Any]
) -> list[Section]:
    """Build the sections of plug-ins from a sweep's files, for a terminal."""
    parts = plugins.results(SECTIONS, "sections", folder, config)
    return _with_caveats([section for built in parts for section in built], config, provenance)


def _with_caveats(
    sections: Iterable[Section], config: Mapping[str, Any], provenance: Mapping[str, Any]
) -> list[Section]:
    logs = reading.readings(config, provenance)
    return [
        dataclasses.replace(s, sentences=tuple(reading.with_caveats(s.sentences, logs)))
        if s.is_answer
        else s
        for s in sections
    ]


def is_current(sweep: Finished) -> bool:
    """Tell whether the verdict has all that follows from other sweeps by now."""
    fields = plugins.constants(SECTIONS, "FIELDS")
    parts = plugins.results(
        SECTIONS, "from_others", sweep.folder.results, sweep.config, sweep.provenance
    )
    now = joined(Contribution(verdict=part) for part in parts).verdict
    return all(
        {key: entry[key] for key in fields if key in entry} == now.get(entry["trace"], {})
        for entry in sweep.folder.verdict()
    )
