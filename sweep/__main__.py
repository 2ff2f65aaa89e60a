"""``python -m sweep``."""

from __future__ import annotations

import os
import signal
import sys

from sim.base import interrupt

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

if __name__ == "__main__":
    interrupt.install(*_SIGNALS)  # before the seconds that imports may take
    # Arrow's own allocator keeps what is freed, and is chosen as Arrow is loaded
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from sweep.cli.main import main
    from sweep.execution.memory import keep_no_large

    keep_no_large()
    interrupt.finish(main(sys.argv[1:]), *_SIGNALS)
