"""A report on the packages of a lock file: their licences, and the holes that are known of them.

Run as ``python .ci/audit.py LOCK...`` (`make audit`). Fails where a hole is known that a newer
version closes. Where the service that knows them does not answer it says so, and does not fail:
pip-audit itself calls a package that nobody knows "skipped", and then finds no holes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

SERVICE = "https://pypi.org/pypi"
ASKED = "numpy"
"""By this package we find out whether the service knows versions: mirrors do not, as a rule."""

PIP_AUDIT = "pip-audit==2.9.0"
KNOCK_S = 10.0
AUDIT_S = 300.0
REPORT = Path("build") / "licences.txt"


def locked(lock: Path) -> dict[str, str]:
    """Give the versions of the packages of a lock file."""
    lines = re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read_text(), re.MULTILINE)
    return dict(lines)


def licence(package: str) -> str:
    """Say under which licence an installed package is, as it says itself."""
    try:
        about = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return "(not for this platform)"
    classes = [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    named = [line.rpartition("::")[2].strip() for line in classes]
    first = (about.get("License") or "").strip().splitlines()[:1]
    given = [about.get("License-Expression"), *named, *first]
    return next((one for one in given if one and one != "OSI Approved"), "(not said)")


def licences(packages: Mapping[str, str]) -> list[str]:
    """List the packages by licence."""
    by_licence: dict[str, list[str]] = {}
    for name, version in sorted(packages.items()):
        by_licence.setdefault(licence(name), []).append(f"{name} {version}")
    return [f"{given}: {', '.join(names)}" for given, names in sorted(by_licence.items())]


def why_silent(version: str) -> str:
    """Say why nobody can be asked about holes; empty if somebody can."""
    try:
        where = f"{SERVICE}/{ASKED}/{version}/json"
        with urllib.request.urlopen(where, timeout=KNOCK_S) as answer:
            known = "vulnerabilities" in json.load(answer)
    except (OSError, ValueError) as error:
        return str(error)
    return "" if known else "it does not know vulnerabilities"


def ask(lock: Path) -> list[dict[str, Any]]:
    """Let pip-audit look a lock file up; give what it says of each package."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        raise OSError("uv, which fetches pip-audit, is not installed beside this Python")
    words = ["--require-hashes", "--disable-pip", "--format=json", "--progress-spinner=off"]
    done = subprocess.run(
        [uv, "tool", "run", "--quiet", PIP_AUDIT, "--requirement", lock, *words],
        capture_output=True,
        text=True,
        timeout=AUDIT_S,
        check=False,
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise OSError(said[-1]) from None
    return found


def holes(found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Give each known hole: a line, and whether a newer version closes it."""
    for one in found:
        for hole in one.get("vulns", ()):
            fixed = hole["fix_versions"]
            way_out = f"closed in {', '.join(fixed)}" if fixed else "no version closes it yet"
            yield f"{one['name']} {one['version']}: {hole['id']}, {way_out}", bool(fixed)


def audit(lock: Path) -> int:
    """Report on the holes of a lock file; give how many of them newer versions close."""
    try:
        if why := why_silent(locked(lock).get(ASKED, "1.0")):
            raise OSError(f"{SERVICE}: {why}")
        found = ask(lock)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{lock}: NOT LOOKED THROUGH for known holes, as nobody can be asked ({error})")
        return 0
    skipped = [one["name"] for one in found if "skip_reason" in one]
    lines = [*holes(found)]
    print(f"{lock}: {len(found) - len(skipped)} packages looked up, {len(lines)} known holes")
    if skipped:
        print(f"  NOT LOOKED UP: {', '.join(skipped)}")
    for line, _ in lines:
        print(f"  {line}")
    return sum(can_be_closed for _, can_be_closed in lines)


def main(locks: Sequence[str]) -> int:
    """Report on lock files."""
    packages: dict[str, str] = {}
    for lock in locks:
        packages |= locked(Path(lock))
    REPORT.parent.mkdir(exist_ok=True)
    lines = licences(packages)
    REPORT.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(packages)} packages under {len(lines)} licences: {REPORT}")
    n_to_close = sum(audit(Path(lock)) for lock in locks)
    if n_to_close:
        print(f"{n_to_close} holes are closed by newer versions: raise them and run `make lock`")
    return 1 if n_to_close else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
