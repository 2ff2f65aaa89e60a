"""``python -m sweep.questions.ui``: the same as ``python -m sweep ui``."""

from __future__ import annotations

import sys

from sweep.questions.ui import main

if __name__ == "__main__":
    sys.exit(main())
