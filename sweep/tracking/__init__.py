"""MLflow: a parent run a sweep, a child run a cell; results never depend on it.

`import mlflow` takes three seconds, so nothing here does it before there is something to log.
"""

from sweep.tracking.connection import TrackingDown, warm_up
from sweep.tracking.log_sweep import Tracked, track

__all__ = ["Tracked", "TrackingDown", "track", "warm_up"]
