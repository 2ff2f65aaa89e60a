"""Secrets in all inputs of a sweep appear in none of its files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweep.store import provenance
from sweep.store.cache import Cache
from tests.sweep.small import Command, every_file, fake_engine, fake_simulate, write_workload

SECRET = "hush"
LEAKY = """
from dataclasses import dataclass

from policies import Policy, register


@register("leaky")
@dataclass(frozen=True)
class Leaky(Policy):
    api_key: str = ""
    where: str = ""
"""
MESSAGE = (
    f"postgresql://me:{SECRET}-in-error@db/x does not answer: password={SECRET}-in-message, "
    f"Authorization: Bearer {SECRET}-as-bearer"
)
DIFF = f"""--- a/conf/tracking/mlflow.yaml
+uri: https://me:{SECRET}-in-diff@host
+password: {SECRET}-as-line
"""


def engine(workload: Any, cluster: Any, policy: Any, *, seed: int, **options: Any) -> Any:
    if seed == 1:
        raise RuntimeError(MESSAGE)
    return fake_simulate(workload, cluster, policy, seed=seed, **options)


@pytest.mark.long
def test_no_file_of_a_sweep_holds_a_secret(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine(monkeypatch, engine)
    user = tmp_path / "user"
    (user / "policy").mkdir(parents=True)
    (user / "leaky_policy.py").write_text(LEAKY)
    (user / "policy" / "leaky.yaml").write_text(
        f"name: leaky\nmodule: leaky_policy\napi_key: {SECRET}-in-file\n"
        f"where: https://{SECRET}-alone@host/path\n"
    )
    trace = write_workload(tmp_path / f"token={SECRET}-in-path")
    words = [
        *("policy=leaky", "seed=0,1", "trace=parquet", f"trace.path='{trace}'"),
        f"policy.where='s3://key:{SECRET}-in-word@bucket/x?secret={SECRET}-in-query','s3://a:{SECRET}@b'",
        f"policy.api_key={SECRET}-swept,{SECRET}-swept-too",
        *("launcher=inline", f"paths.results={command.results}", f"--config-dir={user}"),
    ]
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", f"{SECRET}-in-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{SECRET}-in-environment-too")
    monkeypatch.setattr(provenance, "_git", lambda: ({"commit": "0" * 40}, DIFF))
    monkeypatch.setattr(sys, "argv", ["sweep", *words])
    ran = command.bare(*words)
    assert ran.code == 1
    for verb in (["show"], ["report"], ["track", "tracking.granularity=policy"], ["status"]):
        shown = command.verb(*verb)
        assert SECRET not in shown.out + shown.err, verb
    assert SECRET not in ran.out + ran.err
    written = every_file(command.results)
    names = " ".join(written)
    for part in ("mlflow.db", "journal/", "config.yaml", "report.html", "changes.diff",
                 "provenance.json", "cells.parquet", "traceback.txt", "cache/shards"):  # fmt: skip
        assert part in names
    holders = {
        name: content[position - 60 : position + 40]
        for name, content in written.items()
        if (position := content.find(SECRET.encode())) >= 0
    }
    assert holders == {}
    configs = [*Cache(command.results).configs()]  # compressed, so not searched above
    assert configs
    assert SECRET not in str(configs)
    assert SECRET not in "".join(str(row) for row in ran.rows)
    assert {row["policy.api_key"] for row in ran.rows} == {"***", "*** (2)"}


def test_provenance_names_no_remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(
            ["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True
        )

    git("init", "--quiet")
    git("remote", "add", "origin", f"https://me:{SECRET}-in-remote@host/x.git")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a.yaml").write_text("uri: null\n")
    git("add", ".")
    git("commit", "--quiet", "-m", "First")
    (tmp_path / "conf" / "a.yaml").write_text(f"uri: postgresql://me:{SECRET}-new@host/db\n")
    monkeypatch.setattr(provenance, "_ROOT", tmp_path.resolve())
    words = [f"tracking.uri=https://{SECRET}-word@host", f"+trace.password={SECRET}-value"]
    record, diff = provenance.collect(words, [0], [{"path": f"s3://a:{SECRET}-input@b/c"}])
    assert record["git"]["dirty"]
    assert "+uri: postgresql://me:***@host/db" in diff
    assert SECRET not in json.dumps(record) + diff
