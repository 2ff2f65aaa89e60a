"""The process of a scheduler: started, written to, read from within a time, and ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from typing import IO

import pyarrow as pa

from policies.external.client import END, Columns, Reader
from sim.base.errors import PolicyError

_PIECE = 1 << 16
_MAX_MESSAGE = 1 << 30
_GRACE_S = 2.0


class SchedulerProcess:
    """One scheduler, from its start to its end, and the two streams.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    schema : pyarrow.Schema
        Schema of what is sent.
    timeout_s : float
        Longest time for an answer, s.

    Raises
    ------
    PolicyError
        If it can't be started; from all methods, if it ends, takes longer, or writes anything but
        a stream of batches. The error shows its last line on standard error.
    """

    def __init__(self, command: Sequence[str], schema: pa.Schema, timeout_s: float) -> None:
        self._command, self._timeout_s = command, timeout_s
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            raise PolicyError(
                f"the scheduler {' '.join(command)} can't be started: {error}"
            ) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._out, select.POLLIN)
        self._writable.register(self._in, select.POLLOUT)
        self._buffer, self._position = b"", 0
        self._answers = Reader()
        self._end = weakref.finalize(self, _end, self._process, self._errors)
        self._deadline = time.monotonic() + timeout_s
        self._write([schema.serialize().to_pybytes()])

    def ask(self, parts: Sequence[bytes | memoryview]) -> Columns:
        """Send the parts of a message; return the answer."""
        self._deadline = time.monotonic() + self._timeout_s
        self._write(parts)
        try:
            answer = self._answers.next(self._read)
        except (pa.ArrowException, OSError, StopIteration, ValueError, struct.error) as error:
            raise self._error(f"wrote what is no Arrow stream of batches ({error})") from None
        if answer is None:
            raise self._error("ended its stream before the run was over", _GRACE_S)
        return answer

    def close(self) -> None:
        """End the stream, and the process if it does not end by itself."""
        with contextlib.suppress(PolicyError):
            self._deadline = time.monotonic() + _GRACE_S
            self._write([END])
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self._end()

    def _read(self, n: int) -> bytes:
        """Return the next `n` bytes of its stream; fewer at its end."""
        if n > _MAX_MESSAGE:
            raise self._error(f"wrote what is no Arrow stream of batches (a part of {n:,} bytes)")
        while len(self._buffer) - self._position < n:
            self._wait(self._readable)
            piece = os.read(self._out, max(_PIECE, n))
            if not piece:
                if not self._buffer[self._position :]:
                    raise self._error("ended", _GRACE_S)
                break
            self._buffer, self._position = self._buffer[self._position :] + piece, 0
        part = self._buffer[self._position : self._position + n]
        self._position += len(part)
        return part

    def _write(self, parts: Sequence[bytes | memoryview]) -> None:
        left = sum(map(len, parts))
        try:
            sent = os.writev(self._in, parts)
        except BlockingIOError:
            sent = 0
        except BrokenPipeError:
            raise self._error("ended", _GRACE_S) from None
        if sent == left:
            return
        rest = memoryview(b"".join(parts))[sent:]
        while rest:
            self._wait(self._writable)
            try:
                rest = rest[os.write(self._in, rest) :]
            except BrokenPipeError:
                raise self._error("ended", _GRACE_S) from None

    def _wait(self, poll: select.poll) -> None:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            raise self._error(f"gave no answer within {self._timeout_s:g} s")

    def _error(self, deed: str, ends_within_s: float = 0.2) -> PolicyError:
        """End the process, which may be about to end; return the error, with its last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(ends_within_s)
        code = self._process.returncode
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _PIECE))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self._end()
        ended = "" if code is None else f", exit code {code}"
        words = f": {lines[-1]}" if lines else ", nothing on standard error"
        return PolicyError(f"the scheduler {' '.join(self._command)} {deed}{ended}{words}")


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """End a process and those that it started."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    errors.close()
