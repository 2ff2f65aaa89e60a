"""``python -m sweep``."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Arrow's own allocator keeps what is freed, and is chosen as Arrow is loaded
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from sweep.cli.main import main
    from sweep.execution.memory import keep_no_large

    keep_no_large()
    sys.exit(main(sys.argv[1:]))
