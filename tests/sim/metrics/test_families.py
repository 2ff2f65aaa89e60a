"""Every family of metrics declares and documents its metrics."""

from __future__ import annotations

import pytest

from sim import metrics

AGAINST_BASELINE = metrics.speedups.__doc__ or ""


@pytest.mark.parametrize("family", metrics.FAMILIES.names())
def test_a_metric_has_a_definition(family: str) -> None:
    module = metrics.FAMILIES.module(family)
    documented = f"{metrics.compute.__doc__}{module.compute.__doc__}{AGAINST_BASELINE}"
    for name, metric in module.METRICS.items():
        assert f"``{name}``" in documented, (
            f"sim/metrics/{family}.py: say in the docstring of compute how ``{name}`` is computed"
        )
        assert metric.meaning, f"sim/metrics/{family}.py: {name} has no meaning"


def test_metrics_stand_in_the_order_of_tables() -> None:
    assert list(metrics.METRICS)[:2] == ["jct_mean_s", "jct_p50_s"]
    assert metrics.names(("cpu",))[-1] == "utilization_cpu"
