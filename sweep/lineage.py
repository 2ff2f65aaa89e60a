"""Earlier name of the verb ``lineage``: ``python -m sweep.lineage``."""

from __future__ import annotations

import sys

from sweep.cli.main import main

if __name__ == "__main__":
    print("`python -m sweep.lineage` is `python -m sweep lineage` now", file=sys.stderr)
    sys.exit(main(["lineage", *sys.argv[1:]]))
