"""Resources that a pod of Kubernetes requests, from its spec.

Source: Kubernetes, *Resource Management for Pods and Containers*, *Sidecar Containers* (rules of
the effective request), and ``k8s.io/apimachinery/pkg/api/resource/quantity.go`` (quantities).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sim.base.reading.text import BadLineError
from sim.base.reading.values import json_field

GIB: Final = 2.0**30
GPU_QUANTUM: Final = 1 / 28
"""Quantum of ``gpu``: sevenths and quarters of a GPU are whole numbers of it."""
_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,18}\.?\d{0,9}|\.\d{1,9}))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?$"
)
_SUFFIX: Final = {
    **{f"{sign}i": 1024.0**power for power, sign in enumerate("KMGTPE", 1)},
    **{sign: 1000.0**power for power, sign in enumerate("kMGTPE", 1)},
    "m": 1e-3, "u": 1e-6, "n": 1e-9,
}  # fmt: skip
_GPU = re.compile(
    r"[\w.-]+/(gpu|i915|xe|gaudi|tpu|neuron|npu|dcu|mlu|vgpu-number|ascend\d+\w*)$", re.IGNORECASE
)
"""Whole devices, as their vendors' plug-ins name them."""
_SHARED = "nvidia.com/gpu.shared"
_MIG = re.compile(r"nvidia\.com/mig-(\d)g\.(\d{1,3})gb")
_QUARTERS: Final = {("1", "6"), ("2", "12"), ("4", "24")}
"""Profiles of a GPU that has four slices (A30), not seven; slices and GB."""
_SMALL: Final = ("ephemeral-storage", "storage", "pods")
"""Resources that no node of a simulated cluster has, and that are not worth a word."""


def quantity(key: str, value: Any) -> float:
    """Return a resource quantity, such as ``1500m`` or ``2Gi``, as a number.

    Raises
    ------
    BadLineError
        If it is none, or negative.
    """
    match = _QUANTITY.match(str(value)) if type(value) in (str, int, float) else None
    if match is None:
        text = f"{key} must be a quantity like 1500m or 2Gi, not {str(value)[:40]!r}"
        raise BadLineError("wrong quantity", text)
    number = float(match[1]) * _SUFFIX.get(match[2], 1.0) * 10.0 ** int(match[3] or 0)
    if not 0 <= number <= 1e18:
        text = f"{key} is {str(value)[:40]}; a quantity is from 0 to 1e18"
        raise BadLineError("number out of range", text)
    return number


def pod_demand(spec: Mapping[str, Any], notice: Callable[[str], None]) -> dict[str, float]:
    """Return the demand of a pod: ``cpu`` in cores, ``mem`` in GiB, ``gpu`` if it requests any.

    Containers add up; one that initialises the pod counts where it needs more than these, and one
    that then goes on beside them counts with them. Requests that are missing are the limits. A
    slice of a GPU (MIG) is a seventh of one for each compute slice (on an A30, a quarter).

    Parameters
    ----------
    spec : mapping
        ``spec`` of the pod, or of a pod template.
    notice : callable
        Counts what is left out, or taken for something else.

    Raises
    ------
    BadLineError
        If it has no such form.
    """
    demand = amounts_of(_effective_requests(spec), notice)
    if json_field(spec, "resourceClaims", list):
        notice("resource claims (dynamic resource allocation): left out")
    return demand


def simulated_resource(name: str) -> str:
    """Return ``cpu``, ``mem`` or ``gpu``, as which a resource of Kubernetes counts; "" for none."""
    if name in ("cpu", "memory"):
        return {"cpu": "cpu", "memory": "mem"}[name]
    return "gpu" if name == _SHARED or _MIG.match(name) or _GPU.match(name) else ""


def amounts_of(requests: Mapping[str, float], notice: Callable[[str], None]) -> dict[str, float]:
    """Return amounts of Kubernetes' resources as ``cpu``, ``mem`` and ``gpu`` if there is any.

    Parameters
    ----------
    requests : mapping of str to float
        By Kubernetes' names: ``cpu``, ``memory`` in bytes, ``nvidia.com/gpu``.
    notice : callable
        Counts what is left out, or taken for something else.
    """
    requests = dict(requests)
    demand = {"cpu": requests.pop("cpu", 0.0), "mem": requests.pop("memory", 0.0) / GIB}
    gpus = 0.0
    for name, number in requests.items():
        mig = _MIG.match(name)
        if mig is not None:
            gpus += number * int(mig[1]) / (4 if mig.groups() in _QUARTERS else 7)
            notice("slices of GPUs (MIG): sevenths, of an A30 quarters, of a GPU")
        elif name == _SHARED:
            gpus += number
            notice(f"shared GPUs ({_SHARED}): whole ones")
        elif _GPU.match(name):
            gpus += number
        elif number and name not in _SMALL and not name.startswith("hugepages-"):
            notice(f"requests of {name}: left out")
    return demand | ({"gpu": gpus} if gpus else {})


def _effective_requests(spec: Mapping[str, Any]) -> dict[str, float]:
    running: dict[str, float] = {}  # of the containers that go on beside the others
    highest: dict[str, float] = {}
    for container in json_field(spec, "initContainers", list):
        requests = _requests(container)
        during = _sum((running, requests))
        highest = {
            name: max(during.get(name, 0.0), highest.get(name, 0.0)) for name in during | highest
        }
        if json_field(container, "restartPolicy", str) == "Always":
            running = during
    total = _sum((running, *map(_requests, json_field(spec, "containers", list))))
    total = {name: max(total.get(name, 0.0), highest.get(name, 0.0)) for name in total | highest}
    total |= _requests(spec)  # of the pod as a whole
    return _sum((total, _quantities(spec, "overhead")))


def _requests(owner: Any) -> dict[str, float]:
    return _quantities(owner, "resources.limits") | _quantities(owner, "resources.requests")


def _quantities(owner: Any, name: str) -> dict[str, float]:
    return {
        resource: quantity(f"{name}.{resource}", value)
        for resource, value in json_field(owner, name, dict).items()
    }


def _sum(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, number in part.items():
            total[name] = total.get(name, 0.0) + number
    return total
