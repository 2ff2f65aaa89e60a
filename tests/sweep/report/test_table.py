from __future__ import annotations

import io
import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from sweep.report import default_metrics, table, terminal
from sweep.stats import cell_columns, interval, metric_format
from sweep.stats.summary import summarise
from tests.sweep import frames


def piped(summary: table.Summary, shown: list[str] | None = None) -> str:
    file = io.StringIO()
    terminal.print_table(summary, Console(file=file, force_terminal=False, no_color=True), shown)
    return file.getvalue()


def printed(summary: table.Summary) -> str:
    return "\n".join(on_terminal(summary, 400))


def on_terminal(summary: table.Summary, width: int, shown: list[str] | None = None) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    terminal.print_table(summary, console, shown)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_means_and_intervals_are_those_of_the_seeds() -> None:
    cells = frames.frame()
    summary = summarise(cells, baseline="fifo")
    assert [c.policy for c in summary.columns] == ["fifo", "sjf", "las", "srpt"]
    assert [c.is_baseline for c in summary.columns] == [True, False, False, False]
    (block,) = summary.blocks
    assert block.capacities == (0.5, 0.75, 1.0)
    metric = summary.metrics.index("jct_p90_s")
    values = [frames.metrics_of("las", 0.75, seed)["jct_p90_s"] for seed in (0, 1, 2)]
    mean, low, high = interval(values)
    assert block.mean[1, 2, metric] == pytest.approx(mean)
    assert block.half[1, 2, metric] == pytest.approx((high - low) / 2)
    assert (block.n[:, :, metric] == 3).all()


def test_row_order_does_not_matter() -> None:
    cells = frames.frame(policies=["fifo"], capacities=[1.0], seeds=range(7))
    mixed = cells.take(np.random.default_rng(0).permutation(cells.num_rows))
    assert printed(summarise(cells)) == printed(summarise(mixed))
    mean, other = (summarise(t).blocks[0].mean for t in (cells, mixed))
    np.testing.assert_array_equal(mean, other)


def test_cached_reads_as_done() -> None:
    cells = frames.frame()
    index = cells.column_names.index("status")
    cached = cells.set_column(index, "status", pa.array(["cached"] * cells.num_rows))
    assert table.to_markdown(summarise(cells)) == table.to_markdown(summarise(cached))


def test_failed_cells_are_counted_marked_and_left_out() -> None:
    failed = [("las", 0.5, 1), *(("sjf", 1.0, seed) for seed in (0, 1, 2))]
    summary = summarise(frames.frame(failed=failed), baseline="fifo")
    assert summary.failures[0].cell == "las, alibaba2018, capacity 0.5, seed 1"
    assert summary.failures[0].type == "ZeroDivisionError"
    assert summary.failures[0].reproduce.startswith("python -m sweep policy=las")
    text = printed(summary)
    assert "4 of 36 cells failed" in table.to_markdown(summary)
    assert "of 36 cells failed" not in text  # the list of failures has the number
    rows = [line for line in text.splitlines() if line.startswith("  jct_mean_s")]
    assert ["†" in row for row in rows] == [True, False, False]
    assert [row.count("failed") for row in rows] == [0, 0, 1]
    assert (summary.blocks[0].n[2, 1] == 0).all()
    assert (summary.blocks[0].n[0, 2] == 2).all()


def test_metrics_without_any_value_are_named_once() -> None:
    summary = summarise(frames.frame())
    assert summary.unavailable == ("value_attained", "deadlines_missed")
    lines = printed(summary).splitlines()
    assert lines[-1] == "not available in this sweep: value_attained, deadlines_missed"
    assert not [line for line in lines if line.startswith("value_attained")]


def test_one_seed_shows_the_mean_alone() -> None:
    summary = summarise(frames.frame(seeds=[3]))
    text = printed(summary)
    assert "±" not in text
    assert "confidence" not in text
    assert "1 seed ·" in text


def test_equal_seeds_are_reported_once_and_have_no_interval() -> None:
    cells = frames.frame(policies=["fifo", "srpt"], seeds=[0], capacities=[1.0])
    seeds = pa.array([seed for seed in range(10) for _ in range(cells.num_rows)])
    several = pa.concat_tables([cells] * 10).set_column(3, "seed", seeds)
    text = printed(summarise(several, baseline="fifo"))
    assert text.count("10 seeds (all gave the same results: one is enough)") == 1
    assert "±" not in text
    assert "*: the best\n" in text
    single = printed(summarise(cells, baseline="fifo", is_fixed=True))
    assert single.count("1 seed (no seed changes anything)") == 1
    assert "not tested" not in single
    assert "seeds, all" not in printed(summarise(frames.frame(seeds=[0, 1])))


def test_best_is_marked_by_the_metrics_direction() -> None:
    text = printed(summarise(frames.frame(seeds=[0]), baseline="fifo"))
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if "_" in line}
    assert "*: the best mean (not tested)" in text
    assert [word.endswith("*") for word in rows["jct_mean_s"]] == [False, False, False, True]
    assert [word.endswith("*") for word in rows["jct_speedup_mean"]] == [False, False, False, True]
    assert not any(word.endswith("*") for word in rows["jobs_failed"])  # all the same


def test_policy_parameters_make_columns_and_others_make_blocks() -> None:
    extra = [
        {"policy.las.levels": levels, "cluster.load": load}
        for levels, load in itertools.product((5, 10), (0.7, 0.9))
    ]
    cells = frames.frame(policies=["las"], extra=extra, traces=["a", "b"], seeds=[0, 1])
    fifo = frames.frame(
        policies=["fifo"],
        extra=[{"policy.las.levels": None, "cluster.load": load} for load in (0.7, 0.9)],
        traces=["a", "b"],
        seeds=[0, 1],
    )
    cells = pa.concat_tables([fifo, cells], promote_options="permissive")
    summary = summarise(cells, swept=["policy.las.levels", "cluster.load"], baseline="fifo")
    assert [c.label for c in summary.columns] == ["fifo", "las levels=5", "las levels=10"]
    assert [b.title for b in summary.blocks] == [
        "a, cluster.load=0.7",
        "a, cluster.load=0.9",
        "b, cluster.load=0.7",
        "b, cluster.load=0.9",
    ]
    assert all((b.n_planned == 2).all() for b in summary.blocks)


def test_a_policy_that_never_ran_on_a_trace_has_no_column_there() -> None:
    cells = pa.concat_tables(
        [frames.frame(policies=["fifo", "sjf"], traces=["a"]), frames.frame(["fifo"], traces=["b"])]
    )
    text = printed(summarise(cells))
    first, second = text.split("\nb\n")
    assert "sjf" in first.split("\na\n")[1]
    assert "sjf" not in second


@pytest.mark.parametrize("width", [80, 100, 132, 200])
@pytest.mark.parametrize("n_policies", [4, 11])
def test_every_number_is_on_the_terminal_and_no_line_is_too_long(
    width: int, n_policies: int
) -> None:
    policies = [*frames.POLICIES, *(f"policy_{n}" for n in range(n_policies - 4))]
    summary = summarise(frames.frame(policies=policies, seeds=[0, 1]), baseline="fifo")
    lines = on_terminal(summary, width)
    tables = [line for line in lines if line.startswith(("  jct", "  gap", "  make", "  util"))]
    assert max(map(len, tables)) <= width
    text = "\n".join(lines).replace(" ±", "±").replace(" [", "[")
    block = summary.blocks[0]
    for index, column, metric in np.ndindex(block.mean.shape):
        mean, spread = metric_format.format_mean(
            summary.metrics[metric],
            float(block.mean[index, column, metric]),
            float(block.half[index, column, metric]),
        )
        assert (f"{mean}{spread}" if spread else f" {mean}") in text
    assert "…" not in text


@pytest.mark.parametrize("n_policies", [2, 15])
def test_a_pipe_gets_policies_as_rows_and_at_most_100_columns(n_policies: int) -> None:
    policies = ["fifo", "srpt", *(f"policy_{n}" for n in range(2, n_policies))]
    summary = summarise(frames.frame(policies=policies), baseline="fifo")
    text = piped(summary)
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text
    whole = [line for line in text.splitlines() if line.split()[:1] == ["srpt"]]
    n_parts = len(whole) // 3  # capacities
    assert len(whole) == 3 * n_parts
    values = " ".join(whole[index] for index in range(0, len(whole), 3))
    assert values.count("±") == len(summary.metrics) - 1  # no job failed with any seed
    few = piped(summary, ["jct_mean_s", "jct_p99_s"])
    assert [line.split() for line in few.splitlines() if "jct_mean_s" in line] == [
        ["jct_mean_s", "jct_p99_s"]
    ]
    assert [line for line in few.splitlines() if line.startswith("capacity 0.75")]


def test_default_metrics() -> None:
    cells = frames.frame(seeds=range(4))
    summary = summarise(cells, baseline="fifo")
    shown = default_metrics.choose_metrics(summary, ["jct_p90_s"])
    assert shown == ["jct_p90_s", "jct_mean_s", "jct_p99_s", "jct_speedup_mean", "gap_lb_p50"]
    lines = on_terminal(summary, 120, shown)
    rows = [line.split()[0] for line in lines if line.startswith(("  jct", "  gap", "  util"))]
    assert rows == shown * 3
    (same,) = [line for line in lines if line.startswith("the same for every policy: ")]
    assert "jobs_failed 0%" in same
    left = len(summary.metrics) - len(shown) - 1
    assert lines[-1] == f"{left} more metrics are in the report; metrics=all shows them here"
    alone = summarise(frames.frame(policies=["srpt"]))
    assert len(default_metrics.choose_metrics(alone)) == 5
    assert not [
        line for line in default_metrics.unshown_lines(alone, ["jct_mean_s"]) if "the same" in line
    ]


def test_lost_work_is_shown_where_jobs_stop() -> None:
    cells = frames.frame(policies=["fifo", "srpt"], seeds=range(2))
    lost = {"work_lost_mean_s": 7.0, "stops_mean": 0.0, "stops_mean.queue.a": 0.0, "work_lost": 0.1}
    none = dict.fromkeys(lost, 0.0)
    for values, names in ((lost, ["work_lost_mean_s", "work_lost"]), (none, [])):
        table = cells
        for name, value in values.items():
            is_srpt = np.array(cells["policy"].to_pylist()) == "srpt"
            table = table.append_column(name, pa.array(np.where(is_srpt, value, 0.0)))
        summary = summarise(table, baseline="fifo")
        assert {*summary.metrics} - {*summary.eventful} == {*lost} - {*names}
        shown = default_metrics.choose_metrics(summary, ["jct_mean_s"])
        assert [name for name in shown if name in lost] == names[:1]
        assert not [n for n in default_metrics.unshown_lines(summary, shown) if "stops_mean" in n]


def test_chosen_metrics_keep_those_of_groups() -> None:
    names = ("jct_mean_s", "wait_mean_s", "wait_p95_s", "wait_mean_s.queue.a", "wait_p95_s.queue.a")
    cells = pa.table({"policy": ["fifo"], **{name: [1.0] for name in names}})

    def shown(*chosen: str) -> list[str]:
        config = {"metrics": [*chosen], "swept": []}
        return cell_columns.shown_metrics(cells, config).column_names[1:]

    assert shown() == [*names]
    assert shown("jct_mean_s") == ["jct_mean_s", "wait_p95_s.queue.a"]
    assert shown("jct_mean_s", "wait_mean_s") == ["jct_mean_s", "wait_mean_s", names[3]]


def test_four_policies_fit_into_80_columns() -> None:
    cells = frames.frame(seeds=range(4))
    for name, values in (("n_machines", [58, 92] * 24), ("arrival_scale", [1.0] * 48)):
        cells = cells.append_column(name, pa.array(values, pa.float64()))
    summary = summarise(cells, baseline="fifo")
    lines = on_terminal(summary, 80, default_metrics.choose_metrics(summary))
    heads = ["metric", "fifo", "sjf", "las", "srpt"]
    assert sum(line.split() == heads for line in lines) == 1
    assert "capacity 0.75 (58 to 92 machines)" in lines


def test_a_short_table_is_set_in_the_direction_of_fewer_lines() -> None:
    summary = summarise(
        frames.frame(policies=("fifo", "las", "sjf", "srpt", "tetris"), seeds=range(6))
    )
    shown = ["jct_mean_s", "jct_p99_s"]

    def short(width: int) -> list[str]:
        console = Console(file=io.StringIO(), force_terminal=True, width=width, no_color=True)
        terminal.print_table(summary, console, shown, is_short=True)
        assert isinstance(console.file, io.StringIO)
        lines = [line.strip() for line in console.file.getvalue().splitlines()]
        return [line for line in lines if line]

    narrow, wide = short(44), short(160)
    assert sum(line.startswith("tetris") for line in narrow) == 3  # a row a policy, no split
    assert sum(line.startswith("jct_mean_s") for line in wide) == 3  # a row a metric, no split


def test_the_width_of_a_pipe_follows_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, n_max in (("70", 70), ("300", 300), ("wide", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        widths = [len(line) for line in piped(summarise(frames.frame(seeds=[0, 1]))).splitlines()]
        assert n_max - 60 < max(widths) <= n_max


def test_stars_mark_the_best_and_all_not_significantly_different() -> None:
    cells = frames.frame(seeds=range(6), capacities=[1.0])
    rows = cells.to_pylist()
    noise = dict(enumerate([0.98, 1.03, 0.99, 1.02, 0.97, 1.02]))
    near = {"fifo": 300.0, "las": 120.0, "sjf": 101.0, "srpt": 100.0}
    values = [near[r["policy"]] * (noise[r["seed"]] if r["policy"] == "sjf" else 1.0) for r in rows]
    index = cells.column_names.index("jct_mean_s")
    summary = summarise(cells.set_column(index, "jct_mean_s", pa.array(values)), baseline="fifo")
    ((_, entries),) = table.build_table(summary, summary.blocks[0], ["jct_mean_s"]).groups[0].rows
    stars = dict(zip(frames.POLICIES, (entry.style == "best" for entry in entries), strict=True))
    assert stars == {"fifo": False, "sjf": True, "las": False, "srpt": True}
    markdown = table.to_markdown(summary)
    (line,) = [x for x in markdown.splitlines() if x.startswith("| `jct_mean_s`")]
    assert line.count("**") == 4


def test_verdicts_are_wrapped_and_many_are_cut() -> None:
    file = io.StringIO()
    terminal.print_verdict(["word " * 40 + "end."] * 20, Console(file=file, force_terminal=False))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.endswith("end.") for line in lines) == 12
    assert "and 8 more, in verdict.json and the report" in lines
    assert next(line for line in lines if line).startswith("word word")


def test_an_ascii_output_gets_plain_letters() -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii") as file:
        terminal.print_table(
            summarise(frames.frame(failed=[("las", 0.5, 1)])), Console(file=file, width=200)
        )
        file.flush()
        text = raw.getvalue().decode("ascii")
    assert "+/-" in text
    assert "x +/-" in text


def test_markdown_has_a_row_a_metric_and_bold_for_the_best() -> None:
    summary = summarise(frames.frame(failed=[("las", 0.5, 1)]), baseline="fifo")
    lines = table.to_markdown(summary).splitlines()
    assert "| **capacity 0.75** |  |  |  |  |" in lines
    heads = [line for line in lines if line.startswith("| metric")]
    assert heads == ["| metric | fifo baseline | sjf | las | srpt |"]
    rows = [line for line in lines if line.startswith("| `jct_mean_s`")]
    assert all(row.rstrip(" |").endswith("**") for row in rows)
    n_rows = sum(line.startswith("| `") for line in lines)
    assert n_rows == 3 * len(summary.metrics)
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1


def test_all_failed_still_gives_a_table() -> None:
    grid = itertools.product(frames.POLICIES, (0.5, 0.75, 1.0), (0, 1, 2))
    summary = summarise(frames.frame(failed=list(grid)))
    assert summary.metrics == ()
    assert "36 cells" in printed(summary)
    assert "36 of 36 cells failed" in table.to_markdown(summary)


def test_no_cells_at_all() -> None:
    summary = summarise(frames.frame().slice(0, 0))
    assert summary.n_cells == 0
    assert printed(summary)


@pytest.mark.parametrize(
    ("metric", "mean", "half", "expected"),
    [
        ("jct_mean_s", 12345.6, 7.0, ("12,346", "7")),
        ("jct_mean_s", 1234.5, 0.031, ("1,234", "0.03")),
        ("jct_mean_s", 12.3456, 1.0, ("12.35", "1.00")),
        ("jct_mean_s", 0.01234567, math.nan, ("0.01235", "")),
        ("jct_mean_s", 5.0e10, 1.0, ("5.00e+10", "1.00e+00")),
        ("jct_mean_s", 0.0, 0.0, ("0", "")),
        ("utilization", 0.8312, 0.0041, ("83.1%", "0.4")),
        ("jobs_failed", 0.00123, math.nan, ("0.12%", "")),
        ("gap_lb_p50", 5e-16, 2e-15, ("0.000%", "")),
        ("gap_lb_p90", 23.5, 1.0, ("2,350%", "100")),
        ("jct_speedup_mean", 1.2345, 0.021, ("1.23×", "0.02")),
        ("jct_speedup_p50", 123.4, math.nan, ("123×", "")),
        ("jain_60s", 0.6312, 0.01, ("0.631", "0.010")),
        ("jct_mean_s", math.inf, math.nan, ("∞", "")),
        ("jct_mean_s", math.nan, math.nan, ("", "")),
        ("queue_length", 3.14159, math.nan, ("3.142", "")),
    ],
)
def test_numbers(metric: str, mean: float, half: float, expected: tuple[str, str]) -> None:
    assert metric_format.format_value(metric, mean, half) == expected


@pytest.mark.parametrize(
    ("metric", "mean", "half", "expected"),
    [
        ("wait_mean_s", 680.5, 1116.3, "680.5 [131.9, 3,510] s"),
        ("wait_mean_s", 680.5, 80.0, "680.5 ±80.0 s"),
        ("utilization", 0.97, 0.03, "97.0 % [92.0, 98.9]"),
        ("utilization", 0.5, 0.03, "50.0 % ±3.0"),
        ("jct_speedup_mean", 1.5, 1.2, "1.50× [0.67, 3.34]"),
        ("utility", 0.1, 0.5, "0.1000 ±0.5000"),  # may be negative
        ("my_metric_s", 1.0, 4.0, "1.000 ±4.000 s"),  # its range is not known
        ("jct_mean_s", 0.0, 0.0, "0 s"),
    ],
)
def test_means_with_intervals(metric: str, mean: float, half: float, expected: str) -> None:
    low, high = metric_format.interval_of(metric, mean, half)
    text = metric_format.value_text(metric, mean, half)
    assert text == expected
    assert (
        metric_format.ends_text(metric, mean, low, high).partition("±")[0] == text.partition("±")[0]
    )


def test_unknown_metrics_are_shown_last_without_a_best() -> None:
    cells = frames.frame(seeds=[0])
    values = pa.array(np.arange(cells.num_rows, dtype=np.float64))
    cells = cells.append_column("queue_length_s", values)
    summary = summarise(cells)
    assert summary.metrics[-1] == "queue_length_s"
    rows = [x for x in printed(summary).splitlines() if x.startswith("  queue_length_s")]
    assert len(rows) == 3
    assert "*" not in "".join(rows)


def test_an_oracle_is_named_and_gets_no_star() -> None:
    cells = frames.with_knowledge(frames.frame(), sjf="true", srpt="true", las="learnt")
    summary = summarise(cells, baseline="fifo")
    text = piped(summary)
    assert "srpt oracle" in text
    assert "knowledge of durations: true (sjf, srpt), learnt (las), nothing (fifo)" in text
    assert "it can't be run, and is never the best" in " ".join(text.split())
    metric = summary.metrics.index("jct_mean_s")
    assert summary.blocks[0].best[:, :, metric].tolist() == [[False, False, True, False]] * 3
    unknown = printed(summarise(frames.frame(), baseline="fifo"))
    assert "oracle" not in unknown
    assert "knowledge" not in unknown


def test_a_metric_of_one_policy_is_not_the_same_for_every_policy() -> None:
    cells = frames.frame()
    is_las = [policy == "las" for policy in cells["policy"].to_pylist()]
    values = pa.array([0.5 if chosen else math.nan for chosen in is_las])
    summary = summarise(cells.append_column("own_metric", values), baseline="fifo")
    lines = default_metrics.unshown_lines(summary, ["jct_mean_s"])
    assert "jobs_failed 0%" in lines[0]
    assert "own_metric" not in lines[0]
