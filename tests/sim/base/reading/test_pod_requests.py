"""Quantities and effective requests of pods, by the rules of Kubernetes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.reading import BadLineError
from sim.base.reading.pod_requests import pod_demand, quantity

UNITS = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30,
    "Ti": 2**40, "m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9),
    "e3": 10**3, "E-2": Fraction(1, 100),
}  # fmt: skip


@given(st.decimals(0, 9999, places=3), st.sampled_from(sorted(UNITS)))
def test_a_quantity_is_its_number_times_its_unit(number: Any, unit: str) -> None:
    assert quantity("q", f"{number}{unit}") == pytest.approx(float(Fraction(number) * UNITS[unit]))


@pytest.mark.parametrize("value", ["", "1 Gi", "1gi", "0x1", "1K", "-1", "1e99", None, True, [1]])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(BadLineError, match="q "):
        quantity("q", value)


def asks(**requests: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=5),
    st.lists(st.integers(0, 9), max_size=4),
)
def test_requests_are_the_most_that_is_needed_at_a_time(
    initial: list[tuple[int, bool]], main: list[int]
) -> None:
    spec = {
        "initContainers": [
            {**asks(cpu=n), "restartPolicy": "Always" if goes_on else "Never"}
            for n, goes_on in initial
        ],
        "containers": [asks(cpu=n) for n in main],
    }
    moments = [sum(n for n, goes_on in initial if goes_on) + sum(main)]
    for i, (n, _) in enumerate(initial):
        moments.append(n + sum(m for m, goes_on in initial[:i] if goes_on))
    assert pod_demand(spec, print)["cpu"] == max(moments)


def test_requests_of_the_whole_pod_replace_those_of_containers() -> None:
    spec = {
        "resources": {"requests": {"cpu": "2"}},
        "containers": [asks(cpu="1", memory="1Gi")] * 3,
    }
    assert pod_demand(spec, print) == {"cpu": 2.0, "mem": 3.0}


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("nvidia.com/gpu", 2.0),
        ("amd.com/gpu", 2.0),
        ("gpu.intel.com/i915", 2.0),
        ("habana.ai/gaudi", 2.0),
        ("google.com/tpu", 2.0),
        ("huawei.com/Ascend910", 2.0),
        ("nvidia.com/gpu.shared", 2.0),
        ("nvidia.com/mig-1g.5gb", 2 / 7),
        ("nvidia.com/mig-4g.24gb", 2.0),
        ("example.com/fpga", 0.0),
        ("hugepages-2Mi", 0.0),
    ],
)
def test_devices_of_any_vendor_are_gpus(name: str, gpus: float) -> None:
    noticed: list[str] = []
    demand = pod_demand({"containers": [asks(**{name: "2"})]}, noticed.append)
    assert demand.get("gpu", 0.0) == gpus
    is_plain = gpus == 2.0 and "mig" not in name and "shared" not in name
    assert bool(noticed) != (is_plain or name.startswith("hugepages"))


def test_claims_of_resources_are_told() -> None:
    noticed: list[str] = []
    pod_demand({"containers": [], "resourceClaims": [{"name": "gpu"}]}, noticed.append)
    assert noticed == ["resource claims (dynamic resource allocation): left out"]
