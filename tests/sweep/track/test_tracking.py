from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sweep import track as tracking
from sweep.grid.tracking_uri import sqlite_uri
from sweep.stats.arrange import arrange
from sweep.stats.metric_format import format_value, style
from sweep.store.folder import SweepFolder
from sweep.track import connection, run_data
from sweep.track.capacity_steps import capacity_steps
from sweep.track.runs import VIEW_TAG
from tests.sweep import frames
from tests.sweep.small import set_json

CONFIG = {"tracking": {"uri": "http://me:hunter2@host:5000"}}
PROVENANCE = {
    "command": "python -m sweep tracking.uri=http://me:hunter2@host:5000",
    "git": {"commit": "0123abc"},
}
EXPERIMENT = "sweeps"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    with connection.connected(f"sqlite:///{path}", ""):
        pass
    return path


@pytest.fixture
def sweep(tmp_path: Path, empty_database: Path) -> Sweep:
    folder = tmp_path / "sweeps" / "demo-0123"
    folder.mkdir(parents=True)
    (folder / "table.md").write_text("| a |\n")
    (folder / "report.html").write_text("<p>report</p>\n")
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    return Sweep(folder, f"sqlite:///{tmp_path / 'mlflow.db'}")


class Sweep:
    """A sweep on disk, and its runs in a tracking store."""

    def __init__(self, folder: Path, uri: str) -> None:
        self.folder, self.uri = folder, uri

    def track(self, cells: pa.Table, **options: Any) -> tracking.LogResult:
        def configs(rows: Sequence[int]) -> Iterator[dict[str, Any]]:
            for row in rows:
                name = cells.column("key")[row].as_py()[:4]
                yield {"policy": {"name": name}, "uri": "http://me:hunter2@host"}

        config = options.pop("config", CONFIG)
        return tracking.track(
            self.folder, cells, config, PROVENANCE, configs, self.uri, EXPERIMENT, **options
        )

    def runs(self, query: str = "") -> list[Any]:
        with connection.connected(self.uri, "") as client:
            experiment = client.get_experiment_by_name(EXPERIMENT)
            return list(client.search_runs([experiment.experiment_id], query, max_results=5000))

    def parent(self) -> Any:
        (run,) = self.runs("tags.kind = 'sweep'")
        return run

    def children(self, query: str = "") -> list[Any]:
        return self.runs("tags.kind = 'cell'" + (f" and {query}" if query else ""))

    def artifact(self, run: Any, name: str, to: Path) -> str:
        with connection.connected(self.uri, "") as client:
            return Path(client.download_artifacts(run.info.run_id, name, str(to))).read_text()


def small(**options: Any) -> pa.Table:
    return frames.frame(
        **({"policies": ["fifo", "las"], "capacities": [0.5], "seeds": [0, 1]} | options)
    )


def test_a_run_says_what_its_policy_knows(sweep: Sweep) -> None:
    sweep.track(frames.with_knowledge(small(), las="learnt"), swept=[], baseline="fifo")
    (child,) = sweep.children("tags.policy = 'las' and tags.seed = '0'")
    assert child.data.params["knows"] == "learnt"
    assert child.data.tags["knows"] == "learnt"
    assert sorted(run.data.tags["knows"] for run in sweep.children()) == [
        "learnt", "learnt", "nothing", "nothing",
    ]  # fmt: skip


def test_a_sweep_reads_back(sweep: Sweep, tmp_path: Path) -> None:
    cells = small(extra=[{"policy.las.levels": 5}])
    key = cells.column("key").to_pylist()[1]
    times = np.full((4, 2), math.nan)
    times[1] = 1000.0, 1012.5
    result = sweep.track(cells, swept=["policy.las.levels"], baseline="fifo", times=times)
    assert (result.n_logged, result.n_present) == (4, 0)
    parent = sweep.parent()
    assert parent.info.run_id == result.run_id
    assert parent.info.status == "FINISHED"
    assert parent.data.params == {
        "policy": "fifo,las",
        "trace": "alibaba2018",
        "capacity": "0.5",
        "seed": "0,1",
        "policy.las.levels": "5",
        "baseline": "fifo",
    }
    assert parent.data.metrics.items() >= {"cells": 4.0, "cells_failed": 0.0}.items()
    assert parent.data.tags["sweep_id"] == "demo-0123"
    assert parent.data.tags["mlflow.source.git.commit"] == "0123abc"
    assert sweep.artifact(parent, "table.md", tmp_path) == "| a |\n"
    assert sweep.artifact(parent, "report.html", tmp_path) == "<p>report</p>\n"

    (child,) = sweep.children("tags.policy = 'las' and tags.capacity = '0.5' and tags.seed = '0'")
    assert child.info.status == "FINISHED"
    assert child.info.run_name == "las 0.5 seed 0 policy.las.levels=5 alibaba2018"
    assert (child.info.start_time, child.info.end_time) == (1_000_000, 1_012_500)
    assert child.data.params == {
        "policy": "las",
        "trace": "alibaba2018",
        "capacity": "0.5",
        "seed": "0",
        "policy.las.levels": "5",
        "sweep": "demo-0123",
    }
    assert child.data.tags["policy.las.levels"] == "5"
    expected = frames.metrics_of("las", 0.5, 0)
    assert child.data.metrics == {k: v for k, v in expected.items() if not math.isnan(v)}
    tags = child.data.tags
    assert tags["mlflow.parentRunId"] == parent.info.run_id
    assert (tags["cell_key"], tags["status"], tags["trace"]) == (key, "done", "alibaba2018")
    assert tags["sweep_id"] == "demo-0123"
    assert "name:" in sweep.artifact(child, "config.yaml", tmp_path)
    artifacts = tmp_path / "mlflow-artifacts"
    assert (artifacts / child.info.run_id / "artifacts" / "config.yaml").is_file()


@pytest.mark.parametrize("name", ["a%20b", "why?", "a?b=c#1", "für 'x' \"y\" 100%"])
def test_a_folder_of_results_may_have_any_name(
    tmp_path: Path, empty_database: Path, name: str
) -> None:
    """The runs, their files and the memo are in the folder, and nothing is beside it."""
    results = tmp_path / "here" / name
    folder = results / "sweeps" / "demo-0123"
    folder.mkdir(parents=True)
    shutil.copy(empty_database, results / "mlflow.db")
    sweep = Sweep(folder, sqlite_uri(results / "mlflow.db"))
    assert sweep.track(small()).n_logged == 4
    assert sweep.track(small()).n_logged == 0
    (child,) = sweep.children("tags.policy = 'las' and tags.seed = '0'")
    assert "name:" in sweep.artifact(child, "config.yaml", tmp_path)
    assert sorted(path.name for path in results.iterdir()) == [
        "journal", "mlflow-artifacts", "mlflow.db", "sweeps",
    ]  # fmt: skip
    assert [path.name for path in results.parent.iterdir()] == [name]


def test_mlflow_is_imported_by_one_thread_at_a_time(
    empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other would find it half imported."""
    events: list[str] = []

    def slow_import() -> None:
        time.sleep(0.3)
        events.append("imported")

    monkeypatch.setattr(connection, "_import_mlflow", slow_import)
    monkeypatch.setattr(connection, "_client", lambda uri: events.append("used"))
    connection.warm_up()
    with connection.connected(sqlite_uri(empty_database), ""):
        pass
    assert events == ["imported", "used"]


def test_the_parent_run_has_the_verdict(sweep: Sweep) -> None:
    sentences = [
        f"t at capacity {capacity}: srpt has the lowest mean JCT." for capacity in (0.5, 1)
    ]
    set_json(sweep.folder, "verdict.json", [{"sentence": sentence} for sentence in sentences])
    cells = small(capacities=[0.5, 1.0])
    sweep.track(cells)
    parent = sweep.parent()
    note = parent.data.tags["mlflow.note.content"].splitlines()
    assert note[:2] == [f"- {sentence}" for sentence in sentences]
    assert note[-1].startswith("8 cells; ")
    assert parent.data.tags["verdict"] == " ".join(sentences)
    assert set(parent.data.metrics) == {"cells", "cells_failed"}  # the others are on the curves
    with_question = {"question": "Why?", "words": ["policy=las", "question=Why?"]}
    sweep.track(cells, config=with_question)
    note = sweep.parent().data.tags["mlflow.note.content"].splitlines()
    assert note[:3] == ["Why?", "", f"- {sentences[0]}"]
    assert "question" not in sweep.parent().data.params
    many = [{"sentence": "word " * 40}] * 100
    set_json(sweep.folder, "verdict.json", many)
    sweep.track(cells)
    note = sweep.parent().data.tags["mlflow.note.content"].splitlines()
    assert len("\n".join(note)) < 5000
    assert any(line.startswith("- And ") for line in note)


def test_the_parent_run_has_the_numbers_of_a_backtest(sweep: Sweep) -> None:
    rows = {"label": ["fifo", "las"], "error": [-0.04, 0.5], "mae": [0.1, math.nan]}
    rows |= {"waited_within_10pct": [0.7, 0.2], "pairs_in_order": [None, 0.9]}
    folder = SweepFolder(sweep.folder)
    folder.replace("backtest.parquet", pa.table(rows))
    folder.commit()
    sweep.track(small(), swept=[], baseline=None)
    metrics = sweep.parent().data.metrics
    assert {name: value for name, value in metrics.items() if name.startswith("backtest")} == {
        "backtest_error/fifo": -0.04,
        "backtest_error/las": 0.5,
        "backtest_mae/fifo": 0.1,
        "backtest_waited_within_10pct/fifo": 0.7,
        "backtest_waited_within_10pct/las": 0.2,
        "backtest_pairs_in_order/las": 0.9,
    }


def test_the_experiment_opens_on_its_runs_in_the_ui(sweep: Sweep) -> None:
    sweep.track(small())
    with connection.connected(sweep.uri, "") as client:
        tags = client.get_experiment_by_name(EXPERIMENT).tags
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    columns = json.loads(tags[VIEW_TAG])["selectedColumns"]
    assert {"attributes.`Description`", "params.`policy`", "params.`capacity`"} <= {*columns}
    assert {"metrics.`jct_mean_s`", "metrics.`gap_lb_p50`"} <= {*columns}
    charts = json.loads(tags[VIEW_TAG])["compareRunCharts"]
    assert [chart["metricKey"] for chart in charts] == [
        *("jct_mean_s", "deadlines_missed", "value_attained", "gap_lb_p50")
    ]
    assert charts[0]["selectedMetricKeys"] == [
        "jct_mean_s",
        "within_95/low/jct_mean_s",
        "within_95/high/jct_mean_s",
    ]


def test_a_failed_cell_is_marked_and_holds_its_traceback(sweep: Sweep, tmp_path: Path) -> None:
    sweep.track(small(failed=[("las", 0.5, 1)]))
    (child,) = sweep.children("tags.status = 'failed'")
    assert child.info.status == "FAILED"
    assert child.data.params["policy"] == "las"
    assert child.data.metrics == {}
    assert child.data.tags["error_type"] == "ZeroDivisionError"
    assert child.data.tags["error_message"] == "float division by zero"
    assert child.data.tags["error_stage"] == "simulate"
    assert "python -m sweep policy=las" in child.data.tags["mlflow.note.content"]
    assert "boom" in sweep.artifact(child, "traceback.txt", tmp_path)
    assert sweep.parent().info.status == "FAILED"
    assert sweep.parent().data.metrics["cells_failed"] == 1.0
    assert len(sweep.children("attributes.status = 'FINISHED'")) == 3


def test_a_rerun_without_changes_does_not_query_mlflow(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = small()
    first = sweep.track(cells)
    (sweep.folder / "cells.parquet").write_bytes(b"with another status")
    cached = cells.set_column(4, "status", pa.array(["cached"] * cells.num_rows))

    def refuse(*_: object) -> None:
        raise AssertionError("queried MLflow")

    monkeypatch.setattr("sweep.track.log_sweep.connected", refuse)
    again = sweep.track(cached)
    assert (again.n_logged, again.n_present) == (0, 4)
    assert (again.run_id, again.experiment_id) == (first.run_id, first.experiment_id)


def test_without_the_memo_nothing_is_logged_twice(sweep: Sweep) -> None:
    sweep.track(small())
    before = {(r.info.run_id, r.info.end_time) for r in sweep.children()}
    connection.memo_path(sweep.folder).unlink()
    assert sweep.track(small()).n_logged == 0
    assert {(r.info.run_id, r.info.end_time) for r in sweep.children()} == before
    assert len(sweep.runs("tags.kind = 'sweep'")) == 1


def test_the_memo_is_ignored_for_another_database(sweep: Sweep, empty_database: Path) -> None:
    sweep.track(small())
    shutil.copy(empty_database, sweep.uri.removeprefix("sqlite:///"))
    assert sweep.track(small()).n_logged == 4
    other = sweep.folder.parent.parent / "other.db"
    shutil.copy(empty_database, other)
    assert Sweep(sweep.folder, f"sqlite:///{other}").track(small()).n_logged == 4


@pytest.mark.parametrize("text", ["", "{", "[]", '{"digest": 1}'])
def test_a_broken_memo_is_ignored(sweep: Sweep, text: str) -> None:
    sweep.track(small())
    connection.memo_path(sweep.folder).write_text(text)
    assert sweep.track(small()).n_logged == 0


def test_a_resumed_sweep_logs_what_is_missing(sweep: Sweep) -> None:
    def stop(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.track(small(seeds=[0]), on_progress=stop)
    assert sweep.parent().info.status == "RUNNING"
    assert not connection.memo_path(sweep.folder).exists()
    result = sweep.track(small())
    assert (result.n_logged, result.n_present) == (2, 2)
    assert sweep.parent().info.status == "FINISHED"
    assert len(sweep.children()) == 4


def test_interrupted_runs_are_logged_again(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import MlflowClient

    n_calls = 0
    whole: Callable[..., None] = MlflowClient.set_terminated

    def cut(self: MlflowClient, *args: Any, **options: Any) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3:
            raise KeyboardInterrupt
        whole(self, *args, **options)

    monkeypatch.setattr(MlflowClient, "set_terminated", cut)
    with pytest.raises(KeyboardInterrupt):
        sweep.track(small())
    assert [r.info.status for r in sweep.children()].count("RUNNING") == 1
    result = sweep.track(small())
    assert (result.n_logged, result.n_present) == (2, 2)
    assert [r.info.status for r in sweep.children()] == ["FINISHED"] * 4
    assert len({r.data.tags["cell_key"] for r in sweep.children()}) == 4


def test_a_cell_that_failed_and_is_done_now_replaces_its_run(sweep: Sweep) -> None:
    sweep.track(small(failed=[("las", 0.5, 1)]))
    result = sweep.track(small())
    assert (result.n_logged, result.n_present) == (1, 3)
    children = sweep.children()
    assert [r.info.status for r in children] == ["FINISHED"] * 4
    assert not any("error_type" in r.data.tags for r in children)
    assert sweep.parent().info.status == "FINISHED"
    assert sweep.parent().data.metrics["cells_failed"] == 0.0


def test_metrics_that_become_known_are_added_to_the_run(sweep: Sweep) -> None:
    cells = small()
    index = cells.column_names.index("jct_speedup_mean")
    unknown = pa.array([math.nan] * cells.num_rows)
    sweep.track(cells.set_column(index, "jct_speedup_mean", unknown))
    before = {r.info.run_id for r in sweep.children()}
    assert not any("jct_speedup_mean" in r.data.metrics for r in sweep.children())
    assert sweep.track(cells).n_logged == 0
    after = sweep.children()
    assert {r.info.run_id for r in after} == before
    assert all("jct_speedup_mean" in r.data.metrics for r in after)


def test_a_new_report_replaces_the_old_one(sweep: Sweep, tmp_path: Path) -> None:
    sweep.track(small())
    (sweep.folder / "report.html").write_text("<p>better</p>\n")
    assert sweep.track(small()).n_logged == 0
    assert sweep.artifact(sweep.parent(), "report.html", tmp_path) == "<p>better</p>\n"


def test_cells_of_one_key_have_a_run_each(sweep: Sweep) -> None:
    cells = small(extra=[{"policy.las.levels": 5}, {"policy.las.levels": 6}], policies=["fifo"])
    index = cells.column_names.index("key")
    cells = cells.set_column(index, "key", pa.array(["same"] * cells.num_rows))
    assert sweep.track(cells, swept=["policy.las.levels"]).n_logged == 4
    connection.memo_path(sweep.folder).unlink()
    assert sweep.track(cells, swept=["policy.las.levels"]).n_logged == 0
    assert len(sweep.children()) == 4


def test_secrets_are_stored_nowhere(sweep: Sweep, tmp_path: Path) -> None:
    cells = small(failed=[("las", 0.5, 1)])
    for name in ("error_traceback", "error_message", "reproduce"):
        index = cells.column_names.index(name)
        texts = [
            None if t is None else f"{t} password=hunter2" for t in cells.column(name).to_pylist()
        ]
        cells = cells.set_column(index, name, pa.array(texts, pa.string()))
    sweep.track(cells)
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert any(p.name == "traceback.txt" for p in files)
    assert [p for p in files if b"hunter2" in p.read_bytes()] == []


def test_progress_counts_cells(sweep: Sweep) -> None:
    seen: list[tuple[int, int]] = []
    sweep.track(small(), on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k, 6) for k in range(1, 7)]  # four cells, two curves


@pytest.mark.long
def test_nothing_is_printed_and_no_file_left_behind(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.sweep import frames\n"
        "from sweep import track as tracking\n"
        "assert 'mlflow' not in sys.modules\n"
        "tracking.warm_up().join()\n"
        "assert 'mlflow' in sys.modules\n"
        "cells = frames.frame(seeds=[0], capacities=[0.5])\n"
        "folder = Path(sys.argv[1], 'sweeps', 'demo')\n"
        "uri = f'sqlite:///{sys.argv[1]}/mlflow.db'\n"
        "configs = lambda rows: [{}] * len(rows)\n"
        "assert tracking.track(folder, cells, {}, {}, configs, uri, 'sweeps').n_logged == 4\n"
        "import logging\n"
        "assert logging.getLogger('mlflow').isEnabledFor(logging.ERROR)\n"
    )
    work = tmp_path / "work"
    work.mkdir()
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", script, str(tmp_path / "results")],
        cwd=work,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(work.iterdir()) == []


def test_a_server_that_is_down_is_an_error_at_once(
    sweep: Sweep, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = Sweep(sweep.folder, f"http://me:hunter2@127.0.0.1:{closed_port}")
    clients: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(connection, "_client", clients.append)
        with pytest.raises(tracking.TrackingDown) as caught:
            down.track(small())
    assert clients == []  # MLflow, whose own patience is minutes
    text = str(caught.value)
    assert f"http://me:***@127.0.0.1:{closed_port}" in text
    assert f"python -m sweep track {sweep.folder}" in text
    assert "hunter2" not in text + repr(caught.value.args[1])
    assert not connection.memo_path(sweep.folder).exists()
    assert sweep.track(small()).n_logged == 4


@pytest.mark.long
def test_logging_resumes_after_a_lost_connection(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    def lost(*_: object, **__: object) -> None:
        raise MlflowException("API request failed\nwith details")

    def lose(done: int, _: int) -> None:
        if done == 3:
            monkeypatch.setattr(MlflowClient, "create_run", lost)

    with pytest.raises(
        tracking.TrackingDown, match=r"API request failed\. The results are on disk"
    ):
        sweep.track(small(), on_progress=lose)
    monkeypatch.undo()
    result = sweep.track(small())
    assert (result.n_logged, result.n_present) == (1, 3)


@pytest.mark.parametrize(
    "content", [b"not a database at all, but longer than a header\n" * 40, None]
)
def test_an_unusable_database_is_an_error(
    sweep: Sweep, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "broken.db"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(tracking.TrackingDown, match=r"broken\.db.*python -m sweep track"):
        Sweep(sweep.folder, f"sqlite:///{path}").track(small())


def test_a_deleted_experiment_is_an_error(sweep: Sweep) -> None:
    result = sweep.track(small())
    with connection.connected(sweep.uri, "") as client:
        client.delete_experiment(result.experiment_id)
    connection.memo_path(sweep.folder).unlink()
    with pytest.raises(tracking.TrackingDown, match="was deleted in MLflow; restore it"):
        sweep.track(small())


def test_errors_of_the_project_are_not_attributed_to_mlflow(sweep: Sweep) -> None:
    def fail(*_: object) -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        sweep.track(small(), on_progress=fail)


class TestGranularity:
    def test_a_run_for_all_seeds_of_a_setting(self, sweep: Sweep, tmp_path: Path) -> None:
        result = sweep.track(small(), granularity="policy")
        assert (result.n_logged, result.n_present) == (2, 0)
        assert sweep.children() == []
        (las,) = sweep.runs("tags.kind = 'policy' and tags.policy = 'las'")
        assert las.info.run_name == "las 0.5 alibaba2018"
        a, b = (frames.metrics_of("las", 0.5, seed)["jct_mean_s"] for seed in (0, 1))
        assert las.data.metrics["jct_mean_s"] == pytest.approx((a + b) / 2)
        # of two values: t(0.975, 1) s / sqrt(2), and s = |a - b| / sqrt(2)
        half = 12.706204736 * abs(a - b) / 2
        assert las.data.metrics["half/jct_mean_s"] == pytest.approx(half)
        assert (las.data.metrics["cells"], las.data.metrics["cells_failed"]) == (2.0, 0.0)
        assert "value_attained" not in las.data.metrics
        assert "half/value_attained" not in las.data.metrics
        assert "seed" not in las.data.tags

    def test_a_setting_with_a_failed_seed_is_marked(self, sweep: Sweep, tmp_path: Path) -> None:
        sweep.track(small(failed=[("las", 0.5, 1)]), granularity="policy")
        (las,) = sweep.runs("attributes.status = 'FAILED' and tags.kind = 'policy'")
        assert las.data.tags["policy"] == "las"
        assert las.data.tags["error_type"] == "ZeroDivisionError"
        assert "seed=1" in las.data.tags["mlflow.note.content"]
        assert (las.data.metrics["cells"], las.data.metrics["cells_failed"]) == (2.0, 1.0)
        expected = frames.metrics_of("las", 0.5, 0)["jct_mean_s"]
        assert las.data.metrics["jct_mean_s"] == pytest.approx(expected)
        assert "half/jct_mean_s" not in las.data.metrics
        assert "boom" in sweep.artifact(las, "traceback.txt", tmp_path)
        assert sweep.parent().data.metrics["cells_failed"] == 1.0

    def test_the_sweep_alone(self, sweep: Sweep) -> None:
        (sweep.folder / "cells.parquet").write_bytes(b"cells")
        result = sweep.track(small(capacities=[0.5, 1.0]), granularity="sweep")
        assert (result.n_logged, result.n_present) == (0, 0)
        (parent,) = sweep.runs()
        a, b = (frames.metrics_of("las", 0.5, seed)["jct_mean_s"] for seed in (0, 1))
        with connection.connected(sweep.uri, "") as client:
            points = client.get_metric_history(parent.info.run_id, "jct_mean_s/las")
        assert [point.step for point in points] == [50, 100]
        assert points[0].value == pytest.approx((a + b) / 2)
        assert (parent.data.metrics["cells"], parent.info.status) == (8.0, "FINISHED")
        with connection.connected(sweep.uri, "") as client:
            names = {file.path for file in client.list_artifacts(parent.info.run_id)}
        assert names == {"cells.parquet", "report.html", "table.md"}

    def test_the_sweeps_means_are_told_apart_by_their_names(self) -> None:
        """A policy ``a b`` on ``c`` is not a policy ``a`` on ``b c``."""
        cells = small(policies=["a b", "a"], traces=["c", "b c"], seeds=[0])
        arranged = arrange(cells, [], None)
        steps = capacity_steps([0.5])
        points = run_data.headline(run_data.over_seeds(arranged), steps)
        names = [name for name, _, _ in points if name.startswith("jct_mean_s/")]
        assert len(names) == len({*names}) == 4

    def test_long_names_of_runs_end_in_a_digest(self) -> None:
        cells = small(extra=[{"trace.path": "x" * 300 + end} for end in "ab"], seeds=[0])
        rows = run_data.over_seeds(arrange(cells, ["trace.path"], None))
        names = {row.name for row in rows}
        assert len(names) == len(rows) == 4
        assert {len(name) for name in names} == {run_data.MAX_NAME}

    def test_runs_of_another_granularity_are_replaced(self, sweep: Sweep) -> None:
        sweep.track(small())
        assert sweep.track(small(), granularity="policy").n_logged == 2
        assert sweep.children() == []
        assert sweep.track(small(), granularity="policy").n_logged == 0
        sweep.track(small(), granularity="sweep")
        assert len(sweep.runs()) == 1
        assert sweep.track(small()).n_logged == 4
        assert len(sweep.children()) == 4

    def test_a_setting_that_is_logged_is_left_alone(self, sweep: Sweep) -> None:
        sweep.track(small(), granularity="policy")
        before = {(run.info.run_id, run.info.end_time) for run in sweep.runs("tags.kind='policy'")}
        connection.memo_path(sweep.folder).unlink()
        result = sweep.track(small(), granularity="policy")
        assert (result.n_logged, result.n_present) == (0, 2)
        after = {(run.info.run_id, run.info.end_time) for run in sweep.runs("tags.kind='policy'")}
        assert after == before

    @pytest.mark.parametrize(
        ("n_seeds", "n_settings", "expected"),
        [(200, 1, "cell"), (201, 1, "policy"), (2, 1000, "policy"), (1, 1001, "sweep")],
    )
    def test_is_chosen_by_the_number_of_runs(
        self, n_seeds: int, n_settings: int, expected: str
    ) -> None:
        n = n_seeds * n_settings
        settings = [i % n_settings for i in range(n)]
        cells = pa.table({"policy": ["fifo"] * n, "seed": range(n), "trace.jobs": settings})
        assert tracking.choose_granularity(None, cells, ["trace.jobs"]) == expected
        assert tracking.choose_granularity("cell", cells, ["trace.jobs"]) == "cell"


def test_every_setting_that_was_given_is_a_parameter(sweep: Sweep) -> None:
    words = ["policy=fifo,las", "+trace.scale=0.1", "launcher=inline", "trace.uri=s3://me:pw@host"]
    sweep.track(small(), config={"words": words})
    for run in (*sweep.children(), *sweep.runs("tags.kind = 'curve'"), sweep.parent()):
        assert run.data.params["trace.scale"] == "0.1"
        assert run.data.params["trace.uri"] == "s3://me:***@host"
        assert "launcher" not in run.data.params
    (child,) = sweep.children("tags.policy = 'las' and tags.seed = '0'")
    assert child.data.params["policy"] == "las"


class TestCurves:
    """A run a policy and trace: a line in MLflow's charts."""

    def test_has_the_means_and_intervals_over_capacity(self, sweep: Sweep) -> None:
        sweep.track(small(capacities=[1.0, 0.5]))
        las, fifo = sorted(
            sweep.runs("tags.kind = 'curve'"), key=lambda run: run.info.run_name, reverse=True
        )
        assert (las.info.run_name, fifo.info.run_name) == ("las alibaba2018", "fifo alibaba2018")
        assert las.data.params["capacity"] == "0.5,1"
        assert (las.data.params["sweep"], las.data.params["seeds"]) == ("demo-0123", "2")
        note = las.data.tags["mlflow.note.content"]
        assert re.fullmatch(
            r"mean JCT [\d,]+ ± [\d,]+ s at capacity 0.5, [\d,]+ ± [\d,]+ s at 1", note
        )
        assert "mlflow.parentRunId" not in las.data.tags
        low, high = "within_95/low", "within_95/high"
        assert sorted(las.data.metrics)[-1].startswith(low)  # below the means, where runs compare
        with connection.connected(sweep.uri, "") as client:
            history = {
                name: [(p.step, p.value) for p in client.get_metric_history(las.info.run_id, name)]
                for name in ("jct_mean_s", f"{low}/jct_mean_s", f"{high}/jct_mean_s")
            }
        assert [step for step, _ in history["jct_mean_s"]] == [50, 100]
        a, b = (frames.metrics_of("las", 0.5, seed)["jct_mean_s"] for seed in (0, 1))
        half = 12.706204736 * abs(a - b) / 2
        mean = (a + b) / 2
        expected = {"": mean, f"{low}/": mean * math.exp(-half / mean)}
        expected[f"{high}/"] = mean * math.exp(half / mean)
        for name, value in expected.items():
            assert history[f"{name}jct_mean_s"][0][1] == pytest.approx(value)

    def test_speaks_of_the_metric_of_the_verdict(self, sweep: Sweep) -> None:
        cells = small(capacities=[0.5, 1.0])
        waits = pa.array([10.0 * row for row in range(cells.num_rows)])
        cells = cells.append_column("wait_p50_s", waits)
        entry = {"trace": "alibaba2018", "metric": "wait_p50_s"}
        set_json(sweep.folder, "verdict.json", [entry])
        sweep.track(cells)
        for curve in sweep.runs("tags.kind = 'curve'"):
            note = curve.data.tags["mlflow.note.content"]
            assert note.startswith(f"{style('wait_p50_s').label} ")
            assert curve.data.metrics["wait_p50_s"] >= 0
            assert "jct_mean_s" in curve.data.metrics

    def test_close_capacities_have_steps_and_words_of_their_own(self, sweep: Sweep) -> None:
        """A note names each capacity with the very value at it."""
        capacities = [0.996, 1.0, 1.004]
        sweep.track(small(capacities=capacities, seeds=[0]))
        (las,) = sweep.runs("tags.kind = 'curve' and tags.policy = 'las'")
        expected = [frames.metrics_of("las", capacity, 0)["jct_mean_s"] for capacity in capacities]
        with connection.connected(sweep.uri, "") as client:
            history = client.get_metric_history(las.info.run_id, "jct_mean_s")
        assert [point.step for point in history] == [996, 1000, 1004]
        assert [point.value for point in history] == pytest.approx(expected)
        first, second, third = (format_value("jct_mean_s", value)[0] for value in expected)
        assert las.data.tags["mlflow.note.content"] == (
            f"mean JCT {first} s at capacity 0.996, {second} s at 1, {third} s at 1.004; "
            "a step is 0.1 %"
        )
        assert las.data.tags["capacity_step"] == "0.1 %"
        assert las.data.metrics["jct_mean_s"] == pytest.approx(expected[-1])

    def test_is_logged_again_when_its_steps_are_old(self, sweep: Sweep) -> None:
        cells = small(capacities=[0.996, 1.0], seeds=[0])
        sweep.track(cells)
        (curve,) = sweep.runs("tags.kind = 'curve' and tags.policy = 'las'")
        with connection.connected(sweep.uri, "") as client:
            client.delete_tag(curve.info.run_id, "capacity_step")  # as before they were distinct
        connection.memo_path(sweep.folder).unlink()
        sweep.track(cells)
        (again,) = sweep.runs("tags.kind = 'curve' and tags.policy = 'las'")
        assert again.info.run_id != curve.info.run_id

    def test_is_logged_again_when_a_point_changes(self, sweep: Sweep) -> None:
        sweep.track(small(capacities=[0.5, 1.0], failed=[("las", 1.0, 0)]))
        (old,) = sweep.runs("tags.kind = 'curve' and tags.policy = 'las'")
        assert old.info.status == "FAILED"
        sweep.track(small(capacities=[0.5, 1.0]))
        (new,) = sweep.runs("tags.kind = 'curve' and tags.policy = 'las'")
        assert new.info.status == "FINISHED"
        (other,) = sweep.runs("tags.kind = 'curve' and tags.policy = 'fifo'")
        assert len(sweep.runs("tags.kind = 'curve'")) == 2
        assert other.info.run_name == "fifo alibaba2018"

    def test_is_left_out_if_there_would_be_too_many(
        self, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run_data, "MAX_CURVES", 1)
        sweep.track(small())
        assert sweep.runs("tags.kind = 'curve'") == []
        assert "jct_mean_s/las" in sweep.parent().data.metrics
