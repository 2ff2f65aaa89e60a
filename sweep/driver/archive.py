"""Archive of a sweep, for another person's machine: one zip file with all that its cells need.

========================  =====================================================================
``archive.json``          format, sweep, digest of each entry, user's modules, files of traces
``sweep/``                the sweep's folder: cells, report, configuration, provenance
``own/``                  sources of the user's own policies, metrics and options
``traces/N/``             files of traces, if asked for
========================  =====================================================================
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sim.base import files, parquet
from sim.base.errors import InputError
from sim.base.masking import mask
from sim.base.sources import modules
from sweep.driver import trace_files
from sweep.driver.foreign import Foreign, is_file_address
from sweep.driver.request import find_modules, recorded_options
from sweep.driver.trace_files import TraceInput
from sweep.execution import notes
from sweep.grid import remote
from sweep.grid.options import Options
from sweep.store import own_sources, sources, zip_files
from sweep.store.file_digests import FileDigests
from sweep.store.folder import CELLS, SweepFolder
from sweep.store.own_sources import OwnFile
from sweep.store.zip_files import Entry

RECORD, SWEEP, OWN, TRACES = "archive.json", "sweep", "own", "traces"
FORMAT = 1


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
        masked = _masked(content)
        if masked != content:
            notes.note(f"{source.name}: what looks like a secret in it is masked in the archive")
        entries[f"{OWN}/{source.name}"] = f"{OWN}/{source.name}", masked
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
        "entries": {name: _digest(content) for name, (_, content) in sorted(entries.items())},
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


def _masked(content: bytes) -> bytes:
    return mask(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")


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


def _digest(content: Path | bytes) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class OpenArchive:
    """An archive, unpacked into a folder that is deleted afterwards."""

    file: Path
    folder: SweepFolder
    root: Path
    modules: Mapping[str, str]  # file of each of the user's modules, below ``own``
    traces: Sequence[TraceInput]

    def import_from(self, *, trust: bool) -> None:
        """Let cells import the modules that it brings; Python of another person runs then.

        Modules that are here already with the same content are imported from here.

        Raises
        ------
        InputError
            If a module is not here and `trust` was not given, or another one of its name is.
        """
        find_modules(Options())
        new = []
        for name, file in self.modules.items():
            local, content = modules.find(name), (self.root / OWN / file).read_bytes()
            if local is None:
                new.append(file)
            elif _masked(local.file.read_bytes()) != content:
                raise InputError(
                    f"{local.file} is not the archive's {OWN}/{file}; verify it in a folder "
                    f"without a module {name}",
                    file=self.file,
                    rule="other module",
                )
        if new and not trust:
            raise InputError(
                f"its cells run Python of its own ({', '.join(new)}); read it "
                f"(unzip -p {self.file} {OWN}/{new[0]}), then --trust runs it",
                file=self.file,
                rule="foreign code",
            )
        if new:
            sys.path.append(str(self.root / OWN))
            sources.forget()  # where modules are was looked up before

    def foreign(self, folders: Sequence[Path], *, trust: bool) -> Foreign:
        """Find the files of its traces: in it, or in the user's folders; nowhere else.

        Raises
        ------
        InputError
            If a file is neither in it nor there, or its address is to be fetched without `trust`.
        """
        digests = FileDigests(self.root / "file_digests.json")
        paths, addresses = {}, set()
        for number, trace in enumerate(self.traces):
            packed = self.root / TRACES / str(number) / trace.name
            if is_file_address(trace.text):
                raise InputError(
                    f"its trace is at {trace.text}, an address of a file of one machine; ask for "
                    "an archive whose trace.path is a path",
                    file=self.file,
                    rule="foreign address",
                )
            if packed.exists():
                paths[trace.text] = packed
            elif remote.is_remote(trace.text):
                if not trust:
                    raise InputError(
                        f"its trace is at {trace.text}; --trust fetches it with your credentials",
                        file=self.file,
                        rule="foreign address",
                    )
                remote.check(trace.text)
                addresses.add(trace.text)
            else:
                paths[trace.text] = self._located(trace, folders, digests)
        return Foreign(paths, frozenset(addresses), frozenset(self.modules))

    def _located(self, trace: TraceInput, folders: Sequence[Path], digests: FileDigests) -> Path:
        path = trace_files.locate(trace, folders, digests.digest)
        if path is None:
            where = f"is not in {folders[-1]}" if folders else "is not looked for here unasked"
            raise InputError(
                f"it lacks the trace {trace.describe()}, which {where}; give paths.traces=DIR, a "
                "folder that holds it, or ask for an archive that `export --with-traces` wrote",
                file=self.file,
                rule="missing trace",
            )
        return path


@contextmanager
def opened(file: Path) -> Iterator[OpenArchive]:
    """Unpack an archive as data and check it; nothing in it is run.

    Raises
    ------
    InputError
        If it is no archive of a sweep, damaged, or of another version.
    """
    with TemporaryDirectory(prefix="sweep-archive-") as name:
        root = Path(name)
        unpacked = zip_files.unpack(file, root, (RECORD, SWEEP, OWN, TRACES))
        record = _record(file, root / RECORD)
        _check_entries(file, record["entries"], unpacked)
        sweeps = root / "results" / "sweeps"
        sweeps.mkdir(parents=True)
        if not (root / SWEEP / CELLS).is_file():
            raise InputError(f"it has no {SWEEP}/{CELLS}", file=file, rule="archive")
        folder = SweepFolder((root / SWEEP).rename(sweeps / record["sweep"]))
        for damaged, reason in folder.damaged().items():
            raise InputError(f"{SWEEP}/{damaged}: {reason}", file=file, rule="archive")
        _check_tables(file, folder)
        try:
            yield OpenArchive(file, folder, root, record["modules"], record["traces"])
        finally:
            _forget_modules(str(root / OWN), record["modules"])


def _forget_modules(own: str, names: Iterable[str]) -> None:
    """Undo imports of the archive's modules: its folder is deleted."""
    if own not in sys.path:
        return
    sys.path.remove(own)
    for name in names:
        origin = getattr(sys.modules.get(name), "__file__", None) or ""
        if origin.startswith(own):
            del sys.modules[name]
    sources.forget()


def _check_tables(file: Path, folder: SweepFolder) -> None:
    try:
        parquet.read(folder.path / CELLS)  # refuses a few bytes that stand for very many
    except InputError as error:
        raise InputError(f"{SWEEP}/{CELLS}: {error.message}", file=file, rule=error.rule) from error
    except Exception as error:  # whatever Arrow makes of foreign bytes
        raise InputError(f"{SWEEP}/{CELLS} can't be read: {error}", file=file) from error


def _record(file: Path, path: Path) -> dict[str, Any]:
    """Read ``archive.json`` of a foreign archive; check every part that is used."""
    try:
        record = json.loads(path.read_bytes())
        if record["format"] != FORMAT:
            raise InputError(
                f"it has format {record['format']!r}, this version reads {FORMAT}", file=file
            )
        name = str(record["sweep"])
        inside = {str(k): str(v) for k, v in record["modules"].items()}
        traces = [_trace_input(entry) for entry in record["traces"]]
        entries = {str(k): str(v) for k, v in record["entries"].items()}
    except InputError:
        raise
    except Exception as error:  # a missing file, or any other content
        raise InputError(
            f"it is no archive of a sweep ({RECORD}: {type(error).__name__}: {error}); "
            "`python -m sweep export` writes one",
            file=file,
            rule="archive",
        ) from error
    zip_files.check_name(file, name, "the sweep")
    for module, source in inside.items():
        expected = module.replace(".", "/")
        if source not in (f"{expected}.py", f"{expected}/__init__.py"):
            raise InputError(f"{source!r} is no file of module {module!r}", file=file)
        if f"{OWN}/{source}" not in entries:
            raise InputError(f"it lacks {OWN}/{source}", file=file, rule="archive")
    for trace in traces:
        zip_files.check_name(file, trace.name, "a trace")
    return {"sweep": name, "modules": inside, "traces": traces, "entries": entries}


def _trace_input(entry: Mapping[str, Any]) -> TraceInput:
    inside = tuple((str(name), str(digest), int(size)) for name, digest, size in entry["files"])
    return TraceInput(str(entry["text"]), str(entry["name"]), bool(entry["is_folder"]), inside)


def _check_entries(file: Path, recorded: Mapping[str, str], unpacked: Mapping[str, Path]) -> None:
    names = unpacked.keys() - {RECORD}
    if names != recorded.keys():
        name = min(names ^ recorded.keys())
        raise InputError(f"{RECORD} and the entries differ in {name!r}", file=file, rule="archive")
    for name, digest in recorded.items():
        if _digest(unpacked[name]) != digest:
            raise InputError(
                f"{name} was changed: its SHA-256 differs from {RECORD}", file=file, rule="archive"
            )
