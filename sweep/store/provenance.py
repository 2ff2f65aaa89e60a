"""Provenance of the numbers: code, packages, machine, seeds, command line.

Nothing in it depends on when or in which folder a sweep ran, so that the same sweep gives the
same bytes.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from sim.base import entry_points
from sim.base.entry_points import PROJECT
from sim.base.masking import mask, mask_tree
from sweep.grid.config_tree import abbreviated

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = (
    *("cluster-sweep", "hydra-core", "mlflow-skinny", "networkx", "numba", "numpy", "omegaconf"),
    *("pandas", "plotly", "pyarrow", "ray", "rich", "scipy"),
)
_ARITHMETIC = ("numba", "numpy", "pyarrow", "scipy")
_LOCK = "requirements.lock"
_CODE = ("sim", "policies", "sweep", "conf", "pyproject.toml", _LOCK)


def collect(
    words: Sequence[str],
    seeds: Sequence[int],
    inputs: Sequence[Mapping[str, Any]],
    own: Sequence[Mapping[str, Any]] = (),
) -> tuple[dict[str, Any], str]:
    """Collect the provenance of a sweep; return too the uncommitted changes of the code.

    `own` describes the user's own modules and options (`sweep.store.own_sources.records`). One
    that is not committed makes the code dirty.
    """
    git, diff = _git()
    diff += "".join(f"own file {f['file']} sha256 {f['sha256']}\n" for f in own if f["dirty"])
    if git is not None:
        git |= _changes(diff)
    provenance = {
        "command": mask(" ".join(["python -m sweep", *words])),
        "seeds": abbreviated(seeds),
        "inputs": mask_tree(list(inputs)),
        "git": git,
        "own": list(own),
        "lock": _digest_of(_ROOT / _LOCK),
        "packages": {name: _version(name) for name in _PACKAGES},
        **({"plugins": plugins} if (plugins := plug_in_packages()) else {}),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cpu_features": cpu_features(),
    }
    return provenance, mask(diff)


def _is_checkout() -> bool:
    """Tell whether this code runs from its own repository."""
    top = git_output(_ROOT, "rev-parse", "--show-toplevel")
    return top is not None and Path(top.strip()).resolve() == _ROOT


def _git() -> tuple[dict[str, Any] | None, str]:
    if not _is_checkout():
        return None, ""
    commit = git_output(_ROOT, "rev-parse", "HEAD")
    diff = (
        git_output(_ROOT, "diff", "HEAD", "--no-color", "--no-ext-diff", "--binary", "--", *_CODE)
        or ""
    )
    new = (
        git_output(_ROOT, "ls-files", "--others", "--exclude-standard", "--", *_CODE) or ""
    ).splitlines()
    lines = [f"new file {name} sha256 {_digest_of(_ROOT / name)}\n" for name in sorted(new)]
    changes = "".join([diff, *lines])
    return {"commit": commit.strip() if commit else None}, changes


def _changes(diff: str) -> dict[str, Any]:
    """Describe the uncommitted changes."""
    digest = hashlib.sha256(diff.encode()).hexdigest() if diff else None
    return {"dirty": bool(diff), "diff_sha256": digest}


def git_output(folder: Path, *words: str) -> str | None:
    """Return the output of a git command in a folder; None if it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _digest_of(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def plug_in_packages() -> dict[str, str]:
    """Return the versions of packages other than this project's whose plug-ins a sweep may use."""
    entries = (e for kind in entry_points.KINDS for e in entry_points.installed(kind).values())
    return dict(sorted((e.package, e.version) for e in entries if e.package != PROJECT))


def other_plug_ins(provenance: Mapping[str, Any]) -> str:
    """Name the packages of plug-ins that a sweep could use and that differ here; '' if none do."""
    recorded, installed = provenance.get("plugins"), plug_in_packages()
    if not isinstance(recorded, Mapping):
        return ""
    differences = [
        f"{name} {version}, here {installed.get(name, 'not installed')}"
        for name, version in recorded.items()
        if installed.get(name) != version
    ]
    return f"it could use {'; '.join(differences)}" if differences else ""


def cpu_features() -> list[str]:
    """Return the instruction-set features of this processor, by NumPy's names."""
    features = import_module("numpy._core._multiarray_umath").__cpu_features__
    return sorted(name for name, is_supported in features.items() if is_supported)


def other_bits(provenance: Mapping[str, Any]) -> str:
    """Describe how a sweep's arithmetic differs from this machine's; empty if it does not."""
    if "cpu_features" not in provenance:
        return "it was computed before numbers were the same bits on every machine"
    recorded = [f"CPU features {' '.join(provenance['cpu_features'])}"]
    current = [f"CPU features {' '.join(cpu_features())}"]
    for name in _ARITHMETIC:
        recorded.append(f"{name} {provenance['packages'].get(name)}")
        current.append(f"{name} {_version(name)}")
    changed = [(old, new) for old, new in zip(recorded, current, strict=True) if old != new]
    if not changed:
        return ""
    return "; ".join(f"it was computed with {old}, this machine has {new}" for old, new in changed)


def other_code(provenance: Mapping[str, Any]) -> str:
    """Name the commit that wrote a sweep; empty if it is this one, or unknown."""
    git = provenance.get("git")
    recorded = git.get("commit") if isinstance(git, Mapping) else None
    current = (git_output(_ROOT, "rev-parse", "HEAD") or "").strip() if _is_checkout() else ""
    if not recorded or not current or recorded == current:
        return ""
    return f"they were written by commit {str(recorded)[:12]}, this is {current[:12]}"


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
