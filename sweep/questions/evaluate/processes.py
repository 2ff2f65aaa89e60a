"""Processes of candidates, as the evaluator holds them: started by a nursery, ended by it."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import SimError
from sweep.questions.evaluate import messages, nursery
from sweep.questions.evaluate.candidate import LENGTH, SHARED_BYTES

T = TypeVar("T")

_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR")
_ROOT = Path(__file__).resolve().parents[3]
_START_S = 300.0  # with a cold cache of kernels


class CandidateError(SimError):
    """A candidate that fails, with the line where it does.

    Parameters
    ----------
    message : str
        What went wrong.
    line : int
        Line of the candidate, 0 if it has none.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message, self.line = message, line


@dataclass
class Budget:
    """Time that a candidate may take in all, s: only waiting for it counts."""

    seconds: float
    used_s: float = 0.0

    @property
    def left_s(self) -> float:
        """Time that is left, s."""
        return max(0.0, self.seconds - self.used_s)

    def waiting(self, wait: Callable[[float], T]) -> T:
        """Call `wait` with a deadline on the clock `time.monotonic`; count its time."""
        begin = time.monotonic()
        try:
            return wait(begin + self.left_s)
        except messages.LateError:
            raise CandidateError(
                f"it takes more than budget_s={self.seconds:g}: its share of an evaluation"
            ) from None
        finally:
            self.used_s += time.monotonic() - begin


class Nursery:
    """The process that candidates' processes are forked from, started on first use."""

    def __init__(self) -> None:
        self._link: socket.socket | None = None
        self._close: Callable[[], Any] | None = None

    def _connected(self) -> socket.socket:
        if self._link is None:
            ours, theirs = socket.socketpair()
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", nursery.__name__, str(theirs.fileno())],
                env=_environment(),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            theirs.close()
            self._link = ours
            self._close = weakref.finalize(self, _end, ours, process)
            ours.settimeout(_START_S)
            if self._line() != nursery.READY.decode().strip():
                self.close()
                raise SimError("the process for candidates did not start")
            ours.settimeout(None)
        return self._link

    def start(self) -> None:
        """Start it now, and not with the first candidate."""
        self._connected()

    def new(self) -> Child:
        """Start a process for one run of a candidate."""
        link = self._connected()
        inbox, our_outbox = os.pipe()
        our_inbox, outbox = os.pipe()
        shared = tempfile.TemporaryFile()  # noqa: SIM115 - the child's holder closes it
        shared.truncate(SHARED_BYTES)
        files = [inbox, outbox, shared.fileno()]
        socket.send_fds(link, [f"{nursery.NEW}\n".encode()], files)
        os.close(inbox)
        os.close(outbox)
        os.set_blocking(our_outbox, False)
        return Child(self, int(self._line()), our_inbox, our_outbox, shared)

    def end(self, process: int) -> int:
        """End a process; return its exit code, below 0 for a signal."""
        link = self._connected()
        link.sendall(f"{nursery.END} {process}\n".encode())
        return int(self._line())

    def _line(self) -> str:
        assert self._link is not None
        data = b""
        while not data.endswith(b"\n"):
            part = self._link.recv(64)
            if not part:
                raise SimError("the process for candidates has ended")
            data += part
        return data.decode().strip()

    def close(self) -> None:
        """End it, and all candidates."""
        if self._close is not None:
            self._close()
        self._link = self._close = None


def _end(link: socket.socket, process: subprocess.Popen[bytes]) -> None:
    link.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    """Return the environment of candidates: no secrets, no folder of anybody's files."""
    folders = [str(_ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return passed | threads | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(folders))}


class Child:
    """A process for one run of a candidate."""

    def __init__(
        self, owner: Nursery, process: int, inbox: int, outbox: int, shared: IO[bytes]
    ) -> None:
        self._owner, self._process, self._shared = owner, process, shared
        self._inbox, self._outbox = inbox, outbox
        self._is_open = True
        self._arrays: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def share(self, arrays: Iterable[NDArray[Any]]) -> None:
        """Share some arrays, as `show` copies them from then on."""
        every = list(arrays)
        n_bytes = sum(array.nbytes for array in every)
        if n_bytes > SHARED_BYTES:
            raise CandidateError(f"the workload is too large: {n_bytes:,} bytes of counters")
        block = mmap.mmap(self._shared.fileno(), max(n_bytes, 1))
        used = 0
        for array in every:
            copy = np.frombuffer(block, array.dtype, array.size, used).reshape(array.shape)
            self._arrays.append((copy, array))
            used += array.nbytes
        self.show()

    def show(self) -> None:
        """Copy the shared arrays as they are now."""
        for copy, array in self._arrays:
            copy[...] = array

    def send(self, content: Any, budget: Budget) -> None:
        """Send content that the candidate believes."""
        data = pickle.dumps(content, protocol=5)
        self.write([LENGTH.pack(len(data)), data], budget)

    def write(self, parts: list[bytes], budget: Budget) -> None:
        """Send bytes."""
        try:
            budget.waiting(lambda deadline: messages.write(self._outbox, parts, deadline))
        except messages.EndedError:
            raise self._ended() from None

    def answer(self, at_most: int, budget: Budget) -> Any:
        """Return the next answer.

        Raises
        ------
        CandidateError
            If it tells an error, ends, sends something else, or takes too long.
        """
        try:
            content = budget.waiting(lambda d: messages.read(self._inbox, at_most, d))
        except messages.EndedError:
            raise self._ended() from None
        except messages.BadMessageError as error:
            raise CandidateError(
                f"its process writes to the pipe of its answers: {error}"
            ) from None
        if not isinstance(content, dict):
            raise CandidateError("its process writes to the pipe of its answers")
        if "error" in content:
            raise _error_of(content["error"])
        return content

    def _ended(self) -> CandidateError:
        code = self.end()
        if code == -signal.SIGXCPU or code == -signal.SIGKILL:
            return CandidateError("its process was ended at its limit of CPU time or memory")
        words = f"signal {-code}" if code < 0 else f"exit code {code}"
        return CandidateError(f"its process ended with {words} before the run was over")

    def end(self) -> int:
        """End the process; return its exit code, 0 if that was done before."""
        if not self._is_open:
            return 0
        self._is_open = False
        self._arrays.clear()
        self._shared.close()
        for pipe in (self._inbox, self._outbox):
            os.close(pipe)
        return self._owner.end(self._process)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.end()


def _error_of(error: Any) -> CandidateError:
    """Return the error that a candidate tells, whatever it says."""
    if not isinstance(error, dict):
        return CandidateError("it tells an error that is none")
    line = error.get("line")
    kind, message = (str(error.get(name, ""))[:1000] for name in ("type", "message"))
    return CandidateError(f"{kind}: {message}", line if type(line) is int and line > 0 else 0)
