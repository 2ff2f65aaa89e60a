from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

import pytest

from sim.base import interrupt
from sim.base.errors import InputError
from sweep import report, track
from sweep.cli import main
from sweep.grid.tracking_uri import sqlite_uri
from sweep.questions import ui
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal
from sweep.track import connection
from tests.e2e.conftest import hear_interrupts
from tests.e2e.listening import is_loopback, listening
from tests.mlflow_ui import Served, browser, served
from tests.ports import any_port
from tests.sweep import frames
from tests.sweep.small import Command

ROOT = Path(__file__).resolve().parents[4]
PATIENCE_S = 120  # on a machine with other work
ODD_NAME = "a%20b why? #1 für 'x' \"y\""
"""Folder of results whose name has all that an address escapes."""


def tracked(folder: Path, uri: str) -> track.LogResult:
    cells = frames.frame(seeds=[0], capacities=[0.5, 1.0], failed=[("las", 0.5, 0)])
    sweep_folder = folder / "sweeps" / "demo-0123"
    sweep_folder.mkdir(parents=True, exist_ok=True)
    (sweep_folder / "table.md").write_text("| a |\n")
    return track.track(
        sweep_folder, cells, {}, {}, lambda rows: [{"seed": 0}] * len(rows), uri, "sweeps"
    )


def fetch(
    url: str, body: dict[str, object] | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    request = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **(headers or {})},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return bytes(answer.read())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / ODD_NAME
    sweep_folder = folder / "sweeps" / "demo-0123"
    sweep_folder.mkdir(parents=True)
    report.write(SweepFolder(sweep_folder), frames.frame(), {"study": None}, {}, baseline="fifo")
    tracked(folder, sqlite_uri(folder / "mlflow.db"))
    return folder


@pytest.fixture(scope="module")
def ui_server(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start the UI on the results."""
    work = tmp_path_factory.mktemp("work")
    with served(results, work) as running:
        yield running
        assert [path.name for path in work.iterdir()] == ["log"]
        assert [path.name for path in results.parent.iterdir()] == [ODD_NAME]
        assert f"http://127.0.0.1:{running.port}/#/experiments/1/runs" in running.log.read_text()
        assert "http://localhost" not in running.log.read_text()
        assert "MLflow has no password" in running.log.read_text()


@pytest.fixture(scope="module")
def server(ui_server: Served) -> str:
    """Return the address of the MLflow server."""
    return f"http://127.0.0.1:{ui_server.port}"


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.long
def test_the_ui_serves_the_sweep_with_its_cells_below_it(server: str) -> None:
    assert b"MLflow" in fetch(server + "/")
    runs = json.loads(
        fetch(
            server + "/ajax-api/2.0/mlflow/runs/search",
            {"experiment_ids": ["1"], "filter": "tags.sweep_id = 'demo-0123'"},
        )
    )["runs"]
    tags = [{t["key"]: t["value"] for t in run["data"]["tags"]} for run in runs]
    (parent,) = (
        run["info"]["run_id"]
        for run, run_tags in zip(runs, tags, strict=True)
        if run_tags["kind"] == "sweep"
    )
    parents = [one_run["mlflow.parentRunId"] for one_run in tags if one_run["kind"] == "cell"]
    assert parents == [parent] * 8
    path = f"/get-artifact?path=table.md&run_uuid={parent}"
    assert fetch(server + path) == b"| a |\n"


@pytest.mark.e2e
@pytest.mark.slow
def test_the_index_is_served_beside_it(ui_server: Served) -> None:
    (address,) = re.findall(r"http://127.0.0.1:\d+/\?token=.*", ui_server.log.read_text())
    assert b"<title>Sweeps</title>" in fetch(address)


@pytest.mark.e2e
@pytest.mark.slow
def test_every_socket_listens_on_loopback(ui_server: Served) -> None:
    sockets = listening(ui_server.pid)
    assert ui_server.port in {port for _, port in sockets}
    assert [host for host, _ in sockets if not is_loopback(host)] == []


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.long
def test_the_report_opens_from_the_sweeps_run(server: str, results: Path) -> None:
    with connection.connected(sqlite_uri(results / "mlflow.db"), "") as client:
        (parent,) = client.search_runs(["1"], "tags.kind = 'sweep'")
    with browser() as page:
        page.goto(f"{server}/#/experiments/1/runs/{parent.info.run_id}/artifacts")
        page.get_by_text(report.HTML, exact=True).first.click()
        heading = page.frame_locator("iframe").locator("h1")
        heading.wait_for()
        assert "demo-0123" in heading.inner_text()


@pytest.mark.e2e
@pytest.mark.slow
def test_a_server_is_tracked_to_like_a_file(
    server: str, results: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = tracked(tmp_path / "elsewhere", server)
    assert (result.n_logged, result.n_present) == (0, 8)  # the results fixture logged the same
    with connection.connected(server, "") as client:
        client.rename_experiment(result.experiment_id, "sweeps before")
    result = tracked(tmp_path / "another", server)
    assert (result.n_logged, result.n_present) == (8, 0)
    (tmp_path / "another" / "journal" / "demo-0123.tracked.json").unlink()
    assert tracked(tmp_path / "another", server).n_logged == 0
    with connection.connected(server, "") as client:
        runs = client.search_runs([result.experiment_id], "tags.kind = 'cell'")
        assert sorted(run.info.status for run in runs) == ["FAILED"] + ["FINISHED"] * 7
        (failed,) = (run for run in runs if run.info.status == "FAILED")
        assert failed.info.artifact_uri.startswith("mlflow-artifacts:")
        for name in ("traceback.txt", "config.yaml"):
            path = client.download_artifacts(failed.info.run_id, name, str(tmp_path))
            assert Path(path).read_text()
        assert client.get_run(result.run_id).info.status == "FAILED"
    stored = results / "mlflow-artifacts" / result.experiment_id / failed.info.run_id
    assert (stored / "artifacts" / "traceback.txt").is_file()
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_the_address_is_that_of_the_latest_sweeps_runs(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    experiment = tracked(tmp_path, uri).experiment_id
    page = f"#/experiments/{experiment}/runs?workflowType=machine_learning"
    page += "&viewStateShareKey=sweeps"
    assert ui.address(uri, 5001) == f"http://127.0.0.1:5001/{page}"
    assert ui.address("postgresql://host/db", 5001) == (
        "http://127.0.0.1:5001/#/experiments?workflowType=machine_learning"
    )


def test_the_server_listens_on_this_machine_only() -> None:
    words = ui.command("sqlite:////r/mlflow.db", 5001)
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert words[words.index("--port") + 1] == "5001"
    assert words[words.index("--artifacts-destination") + 1] == "file:///r/mlflow-artifacts"


def test_the_hint_is_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ui.hint(f"sqlite:///{tmp_path}/results/mlflow.db") == "python -m sweep ui"
    assert ui.hint(f"sqlite:///{tmp_path}/my runs/mlflow.db") == "python -m sweep ui 'my runs'"
    odd = Path("/far") / ODD_NAME / "mlflow.db"
    assert ui.hint(sqlite_uri(odd)) == shlex.join(["python", "-m", "sweep", "ui", str(odd.parent)])
    assert ui.hint("sqlite:////far/x.db") == "python -m sweep ui /far/x.db"
    assert ui.hint("http://me:hunter2@host:5000") == "open http://me:***@host:5000"


@pytest.mark.parametrize("name", ["results", ODD_NAME])
def test_tracking_uri_of_a_folder_file_or_address(tmp_path: Path, name: str) -> None:
    results = tmp_path / name
    results.mkdir()
    (results / "mlflow.db").touch()
    uri = sqlite_uri(results.resolve() / "mlflow.db")
    assert ui.tracking_uri(str(results)) == uri
    assert ui.tracking_uri(str(results / "mlflow.db")) == uri
    assert ui.tracking_uri(uri) == uri
    assert ui.tracking_uri("postgresql://host/db") == "postgresql://host/db"
    with pytest.raises(InputError, match="run `python -m sweep` first, or name another"):
        ui.tracking_uri(str(results / "nowhere"))
    with pytest.raises(InputError, match="open it in a browser"):
        ui.tracking_uri("http://host:5000")


def test_a_named_folder_that_is_missing_is_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["ui", str(tmp_path / "resluts")]) == 2
    assert f"MLflow database {tmp_path}/resluts" in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), (".",), ("paths.results=mine",)])
def test_without_sweeps_the_index_is_served(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    served, serve = list[Path](), ui.Index.serve

    def listen(index: ui.Index) -> None:
        served.append(index.results)
        serve(index, while_true=lambda: False)

    monkeypatch.setattr(ui.Index, "serve", listen)
    monkeypatch.chdir(tmp_path)
    assert main.main(["ui", *words]) == 0
    name = {(): "results", (".",): "."}.get(words, "mine")
    assert served == [(tmp_path / name).resolve()]
    assert "No sweep is logged to MLflow yet" in capsys.readouterr().out


def test_without_mlflows_server_the_index_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    (tmp_path / "mlflow.db").touch()
    monkeypatch.setattr(metadata, "distribution", missing)
    serve = ui.Index.serve
    monkeypatch.setattr(ui.Index, "serve", lambda index: serve(index, while_true=lambda: False))
    command = "pip install 'cluster-sweep[ui]'"
    with pytest.raises(InputError, match=re.escape(command)):
        ui.serve(f"sqlite:///{tmp_path / 'one.db'}", "results", None, None)
    (tmp_path / "sweeps").mkdir()
    assert ui.serve(str(tmp_path), "results", None, None) == 0
    assert command in capsys.readouterr().out


def test_the_index_alone_is_served_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mlflow.db").touch()
    serve = ui.Index.serve
    monkeypatch.setattr(ui.Index, "serve", lambda index: serve(index, while_true=lambda: False))
    assert main.main(["ui", str(tmp_path), "--no-mlflow"]) == 0
    assert main.main(["ui", str(tmp_path), "--no-mlflow"]) == 0
    assert capsys.readouterr().out.count("MLflow's pages are not served") == 2
    assert main.main(["ui", f"sqlite:///{tmp_path}/mlflow.db", "--no-mlflow"]) == 2


def test_a_taken_port_is_skipped() -> None:
    with socket.socket() as taken:
        taken.bind((ui.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert ui.free_port(port, 20) > port
        with pytest.raises(InputError, match="--port N"):
            ui.free_port(port, 1)


def test_an_index_of_results_without_mlflow(fake: Command, tmp_path: Path) -> None:
    folder = fake("policy=fifo").folder
    (fake.results / "secret.txt").write_text("no")
    port = any_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "sweep", "ui", str(fake.results), "--index-port", str(port)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    try:
        assert process.stdout is not None
        output = b"".join(process.stdout.readline() for _ in range(5)).decode()
        base = f"http://127.0.0.1:{port}"
        (token,) = re.findall(rf"    {base}/\?token=([\w-]{{43}})\n", output)
        assert folder.name.encode() in fetch(f"{base}/?token={token}")
        cookie = {"Cookie": f"sweep-ui-{port}={token}"}
        assert b"fifo" in fetch(f"{base}/sweeps/{folder.name}/report.html", headers=cookie)
        inside = (f"sweeps/{folder.name}/", f"journal/{folder.name}.jsonl", "secret.txt")
        for path in (*inside, "sweeps/../secret.txt", "sweeps/%2e%2e/secret.txt", "cache/"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                fetch(f"{base}/{path}", headers=cookie)
        foreign_host = urllib.request.Request(f"{base}/", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign_host, timeout=PATIENCE_S)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == interrupt.INTERRUPTED
        assert process.stdout is not None
        process.stdout.close()


def test_the_index_names_each_sweeps_run(tmp_path: Path) -> None:
    tracked(tmp_path, f"sqlite:///{tmp_path}/mlflow.db")
    Journal(tmp_path, "demo-0123").append("begin", cells=8, todo=8, cached=[])
    served = ui.Index(tmp_path, any_port(), 5099)
    try:
        page = served.page()
    finally:
        served._server.server_close()
    address = (
        r'href="(http://127.0.0.1:5099/#/experiments/1/runs/\w+)\?workflowType=machine_learning"'
    )
    (link,) = re.findall(address, page)
    assert "runs?workflowType=machine_learning" in page
    assert all("workflowType=" in link for link in re.findall(r'href="(http[^"]*)', page))
    (compared,) = re.findall(r'href="http://127.0.0.1:5099/#/compare-runs\?runs=([^&]*)', page)
    assert len(json.loads(urllib.parse.unquote(compared))) == 4  # a run a policy
    with connection.connected(f"sqlite:///{tmp_path}/mlflow.db", "") as client:
        assert client.get_run(link.rpartition("/")[2]).data.tags["sweep_id"] == "demo-0123"


def test_the_index_skips_a_taken_port(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((ui.HOST, 0))  # as by a client: nobody listens there
        port = taken.getsockname()[1]
        served = ui.Index(tmp_path, None, port - 1)
        server = threading.Thread(target=served.serve, args=(iter([True, False]).__next__,))
        server.start()
        try:
            assert served.port > port
            assert b"<title>Sweeps</title>" in fetch(served.address)
        finally:
            server.join()


def test_the_index_has_no_port_above_the_last(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"port 65536: .*; name another: --index-port N"):
        ui.Index(tmp_path, None, 65535)


def test_a_taken_port_of_the_index_is_an_input_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((ui.HOST, 0))
        taken.listen()
        with pytest.raises(InputError, match="--index-port N"):
            ui.Index(tmp_path, taken.getsockname()[1], None)
