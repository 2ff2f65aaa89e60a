"""Earlier place of `sweep.questions.papers.figures`, for studies of users' own."""

import sys

from sweep.questions.papers.figures import *  # noqa: F403

print("sweep.papers.figures is sweep.questions.papers.figures now", file=sys.stderr)
