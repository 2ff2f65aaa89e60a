"""How much memory may be taken."""

from __future__ import annotations

from sim.base import memory


def test_what_is_left_of_this_machine():
    assert 1e6 < memory.available_bytes() < 1e15


def test_a_containers_limit_counts_where_it_is_less(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    whole = memory._left_of_machine()
    (tmp_path / "memory.current").write_text("30000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 500\n")
    (tmp_path / "memory.max").write_text("50000\n")
    assert memory.available_bytes() == 20_500
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_bytes() > whole / 2


def test_where_the_kernel_does_not_tell_all_of_the_machine_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    assert memory._left_of_machine() > 1e6
