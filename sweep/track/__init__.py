"""MLflow: a parent run a sweep, child runs for its cells; results never depend on it.

`import mlflow` takes three seconds, so nothing here does it before there is something to log.
"""

from sweep.track.connection import TrackingDown, is_logged, silent, target_of, uri_of, warm_up
from sweep.track.log_sweep import Tracked, log, track
from sweep.track.rows import choose

__all__ = [
    "Tracked",
    "TrackingDown",
    "choose",
    "is_logged",
    "log",
    "silent",
    "target_of",
    "track",
    "uri_of",
    "warm_up",
]
