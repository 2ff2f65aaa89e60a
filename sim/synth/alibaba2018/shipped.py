"""The tables of Alibaba's cluster-trace-v2018, which travel with the package."""

from __future__ import annotations

from pathlib import Path

SHIPPED = Path(__file__).with_name("tables.json")
