"""``python -m sweep``: find the verb, run it, turn its outcome into an exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable, Sequence

from sim.base import interrupt
from sim.base.errors import InputError, unknown
from sim.base.version import __version__
from sweep.cli.command import Parser, split
from sweep.cli.overview import overview
from sweep.cli.verbs import extensions, function, is_bare, names, verb_position

DONE, FAILED, WRONG = 0, 1, 2
_NO_ROOM = (
    "; free disk space, or move the results folder and name it with paths.results=DIR: "
    "finished cells are stored, and the same command continues from there"
)
_READ_ONLY = "; name a folder that can be written to with paths.results=DIR"
_WAY_OUT = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EFBIG: _NO_ROOM,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
}


def main(argv: Sequence[str]) -> int:
    """Run a command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that it lacks is no reason to fail
    try:
        return _main(list(argv))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt as stopped:
        interrupt.print_line(str(stopped))
        return interrupt.INTERRUPTED
    except BrokenPipeError:
        # the reader of our output has closed it; nothing can be printed any more
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
        return DONE
    except OSError as error:
        print(f"error: {error}{_WAY_OUT.get(error.errno or 0, '')}", file=sys.stderr)
        return WRONG


def _main(argv: list[str]) -> int:
    if argv == ["--version"]:
        print(f"cluster-sweep {__version__}")
        return DONE
    position = verb_position(argv)
    if position is not None:
        name = argv.pop(position)
    elif {"-h", "--help"} & set(argv):
        name = "help"
    elif argv and is_bare(argv[0]):
        hint = "axes are given as policy=fifo,sjf"
        raise InputError(f"{unknown('verb', argv[0], names())}; {hint}", rule="unknown verb")
    else:
        name = "run"
    if name == "help":
        print(overview([word for word in argv if word not in ("-h", "--help")]))
        return DONE
    added = [*extensions(name)]
    command = split(parser(name, added), argv)
    for extension in added:
        done: int | None = function(extension)(command)
        if done is not None:
            return done
    code: int = function(name)(command)
    return code


def parser(name: str, added: Iterable[str] | None = None) -> Parser:
    """Build the parser of a verb, with the flags of some extensions, by default of all."""
    parser = Parser(
        prog=f"python -m sweep {name}",
        usage=f"python -m sweep {name} [key=value ...] [flags]",
        description=function(name).__doc__,
        allow_abbrev=False,
    )
    for part in (name, *(extensions(name) if added is None else added)):
        function(part, "_arguments")(parser)
    return parser
