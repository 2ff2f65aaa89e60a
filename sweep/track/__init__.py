"""MLflow: a parent run a sweep, child runs for its cells; results never depend on it.

`import mlflow` takes three seconds, so nothing here does it before there is something to log.
"""

from sweep.track.connection import (
    TrackingDown,
    is_logged,
    target_id,
    tracking_uri,
    unreachable_warning,
    warm_up,
)
from sweep.track.log_sweep import Tracked, log, track
from sweep.track.rows import choose_granularity

__all__ = [
    "Tracked",
    "TrackingDown",
    "choose_granularity",
    "is_logged",
    "log",
    "target_id",
    "track",
    "tracking_uri",
    "unreachable_warning",
    "warm_up",
]
