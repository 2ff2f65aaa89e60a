"""Export of a sweep as an archive (`sweep.questions.archive.archive`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sim.base import files
from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.driver.request import find_modules, recorded_options
from sweep.execution import notes
from sweep.questions.archive import trace_files
from sweep.questions.archive.archive import FORMAT, OWN, RECORD, SWEEP, TRACES, digest, masked
from sweep.questions.archive.foreign import is_file_address
from sweep.questions.archive.trace_files import TraceInput
from sweep.store import own_sources, zip_files
from sweep.store.file_digests import FileDigests
from sweep.store.folder import SweepFolder
from sweep.store.own_sources import OwnFile
from sweep.store.zip_files import Entry


def export(folder: SweepFolder, file: Path, *, with_traces: bool = False) -> dict[str, Any]:
    """Write a finished sweep as a zip file; the same sweep gives the same bytes.

    Returns
    -------
    dict
        ``archive.json``: ``format``, ``sweep``, ``entries`` (SHA-256 by name), ``modules`` (file
        by module), ``traces``.

    Raises
    ------
    InputError
        If a trace's file is to be in it and is not here.
    """
    config = folder.config()
    configs = _configs(folder)
    entries: dict[str, Entry] = {}
    for member in sorted(folder.path.iterdir()):
        if member.is_file() and not member.name.startswith("."):
            entries[f"{SWEEP}/{member.name}"] = f"{SWEEP}/{member.name}", member
    own = _own_files(folder, config, configs)
    for source in own:
        content = source.path.read_bytes()
        published = masked(content)
        if published != content:
            notes.note(f"{source.name}: what looks like a secret in it is masked in the archive")
        entries[f"{OWN}/{source.name}"] = f"{OWN}/{source.name}", published
    digests = FileDigests(folder.results / "cache" / "file_digests.json")
    inputs = _trace_inputs(configs, digests)
    for number, (trace, path) in enumerate(inputs) if with_traces else ():
        if path is None:
            raise InputError(f"the trace {mask(trace.text)} is not here; leave --with-traces out")
        for name, *_ in trace.files:
            inside = f"{TRACES}/{number}/{trace.name}" + f"/{name}" * trace.is_folder
            entries[inside] = inside, path / name if trace.is_folder else path
    digests.save()
    record = {
        "format": FORMAT,
        "sweep": folder.sweep,
        "entries": {name: digest(content) for name, (_, content) in sorted(entries.items())},
        "modules": {source.module: source.name for source in own if source.module is not None},
        "traces": [{**asdict(trace), "text": mask(trace.text)} for trace, _ in inputs],
    }
    entries[RECORD] = RECORD, files.json_text(record).encode()
    with files.atomic_write(file) as target:
        zip_files.write(target, entries.values())
    return record


def _configs(folder: SweepFolder) -> list[dict[str, Any]]:
    """Return the distinct configurations of cells, their capacities and seeds apart."""
    distinct: dict[str, dict[str, Any]] = {}
    for part in folder.parts(columns=["config"]):
        for text in part["config"].to_pylist():
            config = json.loads(text)
            config.pop("capacity"), config.pop("seed")
            distinct.setdefault(json.dumps(config, sort_keys=True), config)
    return list(distinct.values())


def _own_files(
    folder: SweepFolder, config: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]
) -> list[OwnFile]:
    options = recorded_options(folder, config["config_dirs"])
    find_modules(options)
    cells = ((cell_config["policy"], cell_config["evaluator"]) for cell_config in configs)
    return own_sources.own_files(cells, config["study"], options)


def _trace_inputs(
    configs: Sequence[Mapping[str, Any]], digests: FileDigests
) -> list[tuple[TraceInput, Path | None]]:
    paths: dict[str, tuple[TraceInput, Path | None]] = {}
    for config in configs:
        for trace, path in trace_files.find(config["trace"], digests.digest):
            if path is None and trace.text not in paths:
                notes.note(f"the trace {mask(trace.text)} is not here: its digest is left out")
            if is_file_address(trace.text) and trace.text not in paths:
                notes.note(f"{mask(trace.text)}: `verify` refuses file://; give trace.path=PATH")
            paths.setdefault(trace.text, (trace, path))
    return list(paths.values())
