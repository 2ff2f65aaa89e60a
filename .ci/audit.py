"""Report on the packages of a lock file: their licences and known vulnerabilities.

Run as ``python .ci/audit.py LOCK...`` (`make audit`). Fails if a newer version closes a known
vulnerability. If the vulnerability service does not answer, the report says so and does not fail:
pip-audit calls a package that the service does not know "skipped", and then reports none.
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
PROBE = "numpy"
"""Package by which we test if the service knows vulnerabilities: mirrors do not, as a rule."""

PIP_AUDIT = "pip-audit==2.9.0"
PROBE_TIMEOUT_S = 10.0
AUDIT_TIMEOUT_S = 300.0
REPORT = Path("build") / "licences.txt"


def locked(lock: Path) -> dict[str, str]:
    """Return the versions of the packages of a lock file."""
    lines = re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read_text(), re.MULTILINE)
    return dict(lines)


def licence(package: str) -> str:
    """Return the licence of an installed package, from its own metadata."""
    try:
        about = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return "(not for this platform)"
    classes = [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    named = [line.rpartition("::")[2].strip() for line in classes]
    first = (about.get("License") or "").strip().splitlines()[:1]
    licences = [about.get("License-Expression"), *named, *first]
    return next((text for text in licences if text and text != "OSI Approved"), "(not stated)")


def licences(packages: Mapping[str, str]) -> list[str]:
    """List the packages by licence."""
    by_licence: dict[str, list[str]] = {}
    for name, version in sorted(packages.items()):
        by_licence.setdefault(licence(name), []).append(f"{name} {version}")
    return [f"{text}: {', '.join(names)}" for text, names in sorted(by_licence.items())]


def failure_of_service(version: str) -> str:
    """Return the reason why the service can't be asked; empty if it can."""
    try:
        url = f"{SERVICE}/{PROBE}/{version}/json"
        with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT_S) as answer:
            known = "vulnerabilities" in json.load(answer)
    except (OSError, ValueError) as error:
        return str(error)
    return "" if known else "it does not know vulnerabilities"


def look_up(lock: Path) -> list[dict[str, Any]]:
    """Run pip-audit on a lock file; return its entry for each package."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        raise OSError("uv, which fetches pip-audit, is not installed beside this Python")
    words = ["--require-hashes", "--disable-pip", "--format=json", "--progress-spinner=off"]
    done = subprocess.run(
        [uv, "tool", "run", "--quiet", PIP_AUDIT, "--requirement", lock, *words],
        capture_output=True,
        text=True,
        timeout=AUDIT_TIMEOUT_S,
        check=False,
    )
    try:
        entries: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise OSError(lines[-1]) from None
    return entries


def vulnerabilities(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Yield each known vulnerability: a line, and True if a newer version closes it."""
    for entry in entries:
        for vulnerability in entry.get("vulns", ()):
            fixed = vulnerability["fix_versions"]
            way_out = f"closed in {', '.join(fixed)}" if fixed else "no version closes it yet"
            yield (
                f"{entry['name']} {entry['version']}: {vulnerability['id']}, {way_out}",
                bool(fixed),
            )


def audit(lock: Path) -> int:
    """Report the vulnerabilities of a lock file; return how many newer versions close."""
    try:
        if reason := failure_of_service(locked(lock).get(PROBE, "1.0")):
            raise OSError(f"{SERVICE}: {reason}")
        entries = look_up(lock)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(
            f"{lock}: NOT CHECKED for known vulnerabilities: the service does not answer ({error})"
        )
        return 0
    skipped = [entry["name"] for entry in entries if "skip_reason" in entry]
    lines = [*vulnerabilities(entries)]
    n_known = len(entries) - len(skipped)
    print(f"{lock}: {n_known} packages looked up, {len(lines)} known vulnerabilities")
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
        print(f"newer versions close {n_to_close} vulnerabilities: raise them and run `make lock`")
    return 1 if n_to_close else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
