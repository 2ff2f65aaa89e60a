"""Configuration of another person's cells: it names nothing but what its archive lists.

A path in a configuration is opened, and an address is fetched with the user's credentials. So every
text of a foreign configuration is checked, in any part and at any depth, before anything is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.grid import remote, traces
from sweep.grid.options import Options
from sweep.questions.archive import trace_files

_SCHEME = re.compile(
    rf"\s*([a-z][a-z0-9+.-]*://|({'|'.join(remote.SCHEMES)}|file|https?|ftp):)", re.I
)
_NAMES = ("name", "format", "synth", "shape")
"""Keys whose texts are looked up among registered names."""
_LONGEST = 80
"""Characters of a foreign text that a message repeats."""


@dataclass(frozen=True)
class Foreign:
    """Files, addresses and modules that the configurations of an archive may name.

    Attributes
    ----------
    files : mapping of str to Path
        Files of traces on this machine, by their paths in configurations.
    addresses : frozenset of str
        Addresses of traces in object stores that the user lets be fetched.
    modules : frozenset of str
        Python modules that the archive brings.
    """

    files: Mapping[str, Path]
    addresses: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()

    def check(self, config: Mapping[str, Any]) -> None:
        """Refuse a configuration that names anything else.

        Raises
        ------
        InputError
            If its trace is not listed; if a text is an address or a path that the archive does not
            list, or names a file that is here; if a module is named that it does not bring.
        """
        for path in traces.paths(config["trace"]):
            if path not in self.files and path not in self.addresses:
                raise _unlisted("trace", str(path), "a path or an address")
        for key, text in _texts(config, ""):
            is_module = key.rpartition(".")[2] == "module"
            if is_module and text not in self.modules:
                raise InputError(f"its {key} is {_shown(text)}, a module that it does not bring")
            is_trace = key.partition(".")[0] == "trace"  # the part whose paths are replaced
            if is_module or (is_trace and (text in self.files or text in self.addresses)):
                continue
            if kind := _kind(text, is_name=key.rpartition(".")[2] in _NAMES):
                raise _unlisted(key, text, kind)

    def localized_trace(self, trace: Mapping[str, Any]) -> dict[str, Any]:
        """Return a checked trace's configuration with the files of this machine."""
        self.check({"trace": trace})
        located: dict[str, Any] = trace_files.relocated(trace, self.files)
        return located

    def check_options(self, words: Sequence[str], options: Options) -> None:
        """Refuse a command line, and options of the user's own, that name another module.

        Raises
        ------
        InputError
            With the file, if it is an option's.
        """
        for word in words:
            key, _, value = word.partition("=")
            if "module" in word and not (key.endswith(".module") and value in self.modules):
                raise InputError(f"its words have {_shown(word)}, a module that it does not bring")
        for folder in options.user_dirs:
            for file in sorted(folder.rglob("*.yaml")):
                option = yaml.load(file.read_bytes(), yaml.CSafeLoader)
                for key, text in _texts(option, ""):
                    if key.rpartition(".")[2] == "module" and text not in self.modules:
                        reason = f"its {key} is {_shown(text)}, a module that it does not bring"
                        raise InputError(reason, file=file)


def refuse_addresses(trace: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a trace's configuration, if no text in it is an address.

    For a folder that another person sent: its traces are where the user has put them.
    """
    for text in trace_files.texts(trace):
        if "://" in text:
            raise InputError(
                f"its trace is at {_shown(text)}; --trust fetches it with your credentials",
                rule="foreign address",
            )
    return trace


def _unlisted(key: str, text: str, kind: str) -> InputError:
    return InputError(
        f"its {key} is {_shown(text)}, {kind}, which is not among the archive's traces",
        rule="foreign address",
    )


def is_file_address(text: str) -> bool:
    """Tell whether a text is an address of a local file, which no archive may name."""
    return text.strip().lower().startswith("file:")


def _texts(option: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield each text of a configuration with the dotted key of its place."""
    if isinstance(option, Mapping):
        for name, value in option.items():
            inner = f"{key}.{name}" if key else str(name)
            yield from _texts(value, inner)
    elif isinstance(option, list):
        for value in option:
            yield from _texts(value, key)
    elif isinstance(option, str):
        yield key, option


def _kind(text: str, *, is_name: bool) -> str:
    """Describe a text that may lead out of the archive; empty for any other.

    A registered name (`is_name`) may be that of a file here by chance: it is not opened.
    """
    if _SCHEME.match(text) or "://" in text:
        return "an address"
    if len(text) < 2:  # a separator, or a decimal point
        return ""
    if text.startswith(("/", "~")):
        return "a path of a machine"
    if ".." in text.split("/"):
        return "a path out of its folder"
    try:
        is_here = not is_name and os.path.lexists(text)
    except ValueError:  # a NUL is in no file's name
        return ""
    return "the name of a file or folder that is here" if is_here else ""


def _shown(text: str) -> str:
    masked = mask(text)
    return repr(masked if len(masked) <= _LONGEST else masked[:_LONGEST] + "…")
