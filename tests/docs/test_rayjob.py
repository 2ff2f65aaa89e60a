"""The manifest of a sweep on Kubernetes, against the part of the API's schema that it uses."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sweep.driver import make_request
from tests.conftest import ROOT


@pytest.fixture
def manifest() -> Any:
    return yaml.safe_load((ROOT / "docs" / "kuberay" / "rayjob.yaml").read_text())


def check(manifest: Any) -> None:
    schema = json.loads(Path(__file__).with_name("rayjob_schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(manifest)


def test_fits_the_schema(manifest: Any) -> None:
    check(manifest)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda m: m.update(apiVersion="ray.io/v2"),
        lambda m: m["spec"].pop("rayClusterSpec"),
        lambda m: m["spec"].update(entryPoint="python"),
        lambda m: m["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"].update(cpus=0),
        lambda m: m["spec"]["rayClusterSpec"]["workerGroupSpecs"][0].pop("groupName"),
        lambda m: m["spec"]["rayClusterSpec"].update(authOptions={"mode": "open"}),
    ],
    ids=["version", "no cluster", "unknown field", "number for text", "no name", "no such mode"],
)
def test_the_schema_finds_mistakes(manifest: Any, spoil: Callable[[Any], object]) -> None:
    spoil(manifest)
    with pytest.raises(jsonschema.ValidationError):
        check(manifest)


def test_its_command_is_one(manifest: Any) -> None:
    words = shlex.split(manifest["spec"]["entrypoint"])
    assert words[:3] == ["python", "-m", "sweep"]
    request = make_request(words[3:], [])
    assert request.settings.launcher["kind"] == "ray"
    head = manifest["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    mounted = {mount["mountPath"] for mount in head["containers"][0]["volumeMounts"]}
    assert str(request.settings.results) in mounted


def test_volumes_are_there(manifest: Any) -> None:
    cluster = manifest["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        spec = group["template"]["spec"]
        volumes = {volume["name"] for volume in spec.get("volumes", [])}
        for container in spec["containers"]:
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes
