"""Results of each release stay readable: a folder of results with its cache, and an export.

A folder a release: ``results.zip`` is the results folder of a small sweep that the release ran
(without its journal), and ``export.zip`` what its ``export`` wrote. The pages of both are left out
for their size. That of 0.1.0, which had no ``export`` yet, is by its successor of the same number.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sweep
from sweep.cli.main import main
from sweep.store.cache import Cache
from tests.sweep.small import cached_keys
from tests.test_forge import PROJECT

HERE = Path(__file__).parent
RELEASES = sorted(path.name for path in HERE.iterdir() if (path / "results.zip").exists())
POLICIES, SEEDS = ("fifo", "sjf"), (0, 1, 2)


@pytest.fixture
def results(release, tmp_path):
    with zipfile.ZipFile(HERE / release / "results.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_each_release_is_here():
    text = (HERE.parents[2] / "CHANGELOG.md").read_text()
    assert sorted(re.findall(r"^## (\d+\.\d+\.\d+)", text, re.MULTILINE)) == RELEASES
    assert PROJECT["version"] in RELEASES


def test_they_are_small():
    assert all(file.stat().st_size < 200_000 for file in HERE.rglob("*.zip"))


@pytest.mark.parametrize("release", RELEASES)
def test_a_sweep_of_a_release_is_read(release, results):
    (folder,) = (results / "sweeps").iterdir()
    loaded = sweep.load(folder)
    cells = loaded.cells
    assert sorted(set(cells["policy"])) == list(POLICIES)
    assert sorted(set(cells["seed"])) == list(SEEDS)
    assert (cells["status"] == "done").all()
    assert np.isfinite(cells["jct_mean_s"]).all()
    assert len(cells) == len(POLICIES) * len(SEEDS)


@pytest.mark.parametrize("release", RELEASES)
def test_the_cache_of_a_release_is_read(release, results):
    cache = Cache(results)
    configs = list(cache.configs())
    assert sorted((c["policy"]["name"], c["seed"]) for c in configs) == [
        (policy, seed) for policy in POLICIES for seed in SEEDS
    ]
    (folder,) = (results / "sweeps").iterdir()
    cells = sweep.load(folder).cells.set_index("key")
    cached = cached_keys(cache, list(cells.index))
    assert len(cached) == len(configs)
    for key in cached:
        assert cache.get(key).metrics["jct_mean_s"] == cells.loc[key, "jct_mean_s"]
        assert cache.config(key)["policy"]["name"] == cells.loc[key, "policy"]


@pytest.mark.parametrize("release", RELEASES)
def test_an_export_of_a_release_is_read(release, capsys):
    """Bits may differ, as what they mean may have changed; every cell is read and run again."""
    code = main(["verify", str(HERE / release / "export.zip"), "--cells", "6"])
    out = capsys.readouterr().out
    assert code in (0, 1)
    assert re.search(r"\d of 6 cells are the same", out)
    assert len(re.findall(r"^row \d+: ", out, re.MULTILINE)) == 6


@pytest.mark.parametrize("release", RELEASES)
def test_a_sweep_of_a_release_is_listed_and_reported(release, results, capsys):
    assert main(["list", f"paths.results={results}"]) == 0
    assert "6 " in capsys.readouterr().out
    assert main(["report", f"paths.results={results}"]) == 0
    (folder,) = (results / "sweeps").iterdir()
    assert "sjf" in (folder / "report.html").read_text()
