"""Id of a sweep: its name, and a digest of its cells and of what its tables show."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sweep.grid.config_tree import canonical
from sweep.grid.request import Request


class SweepId:
    """Digest of a sweep's cells, their labels, the baseline and the shown metrics.

    It is the SHA-256 of a canonical text, fed row by row: the text of a million cells is too large.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        header = {"baseline": request.baseline, "metrics": request.metrics}
        self._digest = hashlib.sha256(f'{canonical(header)[:-1]},"rows":['.encode())
        self._separator = ""

    def add(self, labels: Mapping[str, Any], key: bytes) -> None:
        """Add a row."""
        self._digest.update(f'{self._separator}[{canonical(labels)},"{key.hex()}"]'.encode())
        self._separator = ","

    def end(self) -> str:
        """Return the id, ``<name>-<8 hex digits>``."""
        metric = self._request.verdict_metric
        end = "" if metric is None else f',"verdict":{canonical(metric)}'
        self._digest.update(f"]{end}}}".encode())
        return f"{sweep_name(self._request)}-{self._digest.hexdigest()[:8]}"


def sweep_name(request: Request) -> str:
    """Name of a sweep: ``name=``, else its experiment's, else ``sweep``."""
    return (request.name or request.experiment or "sweep").replace("/", "-")
