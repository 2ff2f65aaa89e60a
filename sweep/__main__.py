"""``python -m sweep``."""

from __future__ import annotations

import sys

from sweep.cli.main import main
from sweep.execution.memory import keep_no_large

if __name__ == "__main__":
    keep_no_large()
    sys.exit(main(sys.argv[1:]))
