"""MLflow tracking: a parent run a sweep, child runs for its cells; results never depend on it.

`import mlflow` takes three seconds, so it is deferred until there is something to log.
"""

from sweep.track.connection import (
    TrackingDown,
    is_logged,
    target_id,
    tracking_uri,
    unreachable_warning,
    warm_up,
)
from sweep.track.log_sweep import LogResult, log, track
from sweep.track.run_data import choose_granularity

__all__ = [
    "LogResult",
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
