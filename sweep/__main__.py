"""``python -m sweep``, and the console script ``cluster-sweep``."""

from __future__ import annotations

import os
import signal
import sys

from sim.base import extras, interrupt
from sim.base.errors import InputError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Run the command line of this process, and end the process with its exit code."""
    interrupt.install(*_SIGNALS)  # before the seconds that imports may take
    # Arrow's own allocator keeps what is freed, and is chosen as Arrow is loaded
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        extras.require("sweep")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    from sweep.cli.main import main as run  # after the signals are taken over
    from sweep.execution.memory import return_large_blocks

    return_large_blocks()
    interrupt.finish(run(sys.argv[1:]), *_SIGNALS)


if __name__ == "__main__":
    main()
