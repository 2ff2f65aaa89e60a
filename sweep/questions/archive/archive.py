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
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sim.base import parquet
from sim.base.errors import InputError, summary_line
from sim.base.masking import mask
from sim.base.sources import modules
from sweep.driver.request import find_modules
from sweep.grid import remote
from sweep.grid.options import Options
from sweep.grid.yaml_aliases import check_aliases
from sweep.questions.archive import recorded, trace_files
from sweep.questions.archive.foreign import Foreign, is_file_address
from sweep.questions.archive.trace_files import TraceInput
from sweep.store import own_sources, plain_data, sources, zip_files
from sweep.store.file_digests import FileDigests
from sweep.store.folder import CELLS, CONFIG, WAY_OUT, SweepFolder

RECORD, SWEEP, OWN, TRACES = "archive.json", "sweep", "own", "traces"
FORMAT = 1


def masked(content: bytes) -> bytes:
    """Mask what looks like a secret in a source."""
    return mask(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def digest(content: Path | bytes) -> str:
    """SHA-256 of a file or of its content, in hex."""
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
            elif masked(local.file.read_bytes()) != content:
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
                if not trace.matches(packed, digests.digest):
                    raise InputError(
                        f"the trace {packed.name} in it is not {trace.describe()} of {RECORD}",
                        file=self.file,
                        rule="other trace",
                    )
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

    def options(self) -> Options:
        """Return the options that it brings, by the folders that its configuration names."""
        recorded_dirs = self.folder.config()["config_dirs"]
        brought = [
            path
            for path in sorted((self.root / OWN).glob("*/"))
            if any((path / group).is_dir() for group in own_sources.OPTION_GROUPS)
        ]
        by_name = {path.name: path for path in brought}
        folders = []
        for name in recorded_dirs:
            path = by_name.get(Path(name).name) or (brought[0] if brought else self.root / "none")
            path.mkdir(exist_ok=True)
            brought = [other for other in brought if other != path]
            folders.append(path)
        return Options(tuple(folders), tuple(recorded_dirs))

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
        If it is no archive of a sweep, damaged, or of another version. Whatever its content does to
        the caller is such an error, too: it names the archive and the entry.
    """
    with TemporaryDirectory(prefix="sweep-archive-") as name:
        root = Path(name)
        try:
            with _as_entries(file, root):
                archive = _unpacked(file, root)
                yield archive
        finally:
            _forget_modules(str(root / OWN))


def _unpacked(file: Path, root: Path) -> OpenArchive:
    unpacked = zip_files.unpack(file, root, (RECORD, SWEEP, OWN, TRACES))
    record = _record(file, root / RECORD)
    _check_entries(file, record["entries"], unpacked)
    check_aliases(root)  # of options, too
    if not (root / SWEEP / CELLS).is_file():
        raise InputError(f"it has no {SWEEP}/{CELLS}", file=file, rule="archive")
    for path in sorted((root / SWEEP).glob("*.parquet")):
        _check_table(path)
    sweeps = root / "results" / "sweeps"
    sweeps.mkdir(parents=True)
    folder = SweepFolder((root / SWEEP).rename(sweeps / record["sweep"]))
    for damaged, reason in folder.damaged().items():
        raise InputError(f"{SWEEP}/{damaged}: {reason}", file=file, rule="archive")
    recorded.check(folder)
    if folder.config().get("sweep", folder.sweep) != folder.sweep:
        reason = f"{RECORD} calls it {folder.sweep!r}, and {CONFIG} does not"
        raise InputError(reason, file=file, rule="archive")
    return OpenArchive(file, folder, root, record["modules"], record["traces"])


@contextmanager
def _as_entries(file: Path, root: Path) -> Iterator[None]:
    """Name the archive and its entry in errors, instead of an unpacked copy."""
    try:
        yield
    except InputError as error:
        inside = Path(error.file or "")
        if not inside.is_relative_to(root):
            raise
        *_, entry = inside.relative_to(root).as_posix().partition("results/sweeps/")
        entry = f"{SWEEP}/{entry.partition('/')[2]}" if entry else str(inside.relative_to(root))
        line = "" if error.line is None else f", line {error.line}"
        message = f"{entry}{line}: {error.message.removesuffix(f'; {WAY_OUT}')}"
        raise InputError(message, file=file, rule=error.rule) from error
    except OSError:  # of this machine
        raise
    except Exception as error:  # whatever foreign content does
        reason = f"its content can't be used: {type(error).__name__}: {summary_line(error)}"
        raise InputError(reason, file=file, rule="archive") from error


def _check_table(path: Path) -> None:
    try:
        plain_data.check_parquet(path)
        parquet.read(path)
    except InputError:
        raise
    except Exception as error:  # whatever Arrow makes of foreign bytes
        raise InputError(f"it can't be read: {summary_line(error)}", file=path) from error


def _forget_modules(own: str) -> None:
    """Undo imports of the archive's modules: its folder is deleted."""
    if own not in sys.path:
        return
    sys.path.remove(own)
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(own):
            del sys.modules[name]
    sources.forget()


def _record(file: Path, path: Path) -> dict[str, Any]:
    """Read ``archive.json`` of a foreign archive; check every part that is used."""
    try:
        record = plain_data.loads(path.read_bytes())
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


def _check_entries(file: Path, checksums: Mapping[str, str], unpacked: Mapping[str, Path]) -> None:
    names = unpacked.keys() - {RECORD}
    if names != checksums.keys():
        name = min(names ^ checksums.keys())
        raise InputError(f"{RECORD} and the entries differ in {name!r}", file=file, rule="archive")
    for name, checksum in checksums.items():
        if digest(unpacked[name]) != checksum:
            raise InputError(
                f"{name} was changed: its SHA-256 differs from {RECORD}", file=file, rule="archive"
            )
