from __future__ import annotations

import io
import itertools
import math
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from sweep import stats
from sweep.report import headlines as against
from sweep.report.headlines import Headline
from sweep.report.table_model import Cell
from sweep.stats import contrasts
from sweep.stats.metric_format import format_contrast
from sweep.stats.summary import summarise
from tests.sweep import frames

SEEDS = range(8)
MOST_COLUMNS = 20


def compared(cells: pa.Table, **options: object) -> list[dict[str, object]]:
    arguments = {"swept": (), "baseline": "fifo", **options}
    table = contrasts.compare(cells, **arguments)  # type: ignore[arg-type]
    assert table is not None
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


def shown(cells: pa.Table, **options: object) -> list[Headline]:
    arguments = {"swept": (), "baseline": "fifo", **options}
    return against.headlines(contrasts.compare(cells, **arguments), "fifo")  # type: ignore[arg-type]


def cells_of(headline: Headline, policy: str = "") -> list[Cell]:
    """Return the cells of a table, row by row; or those of a policy's first row."""
    rows = [row for group in headline.table.groups for row in group.rows]
    policy_rows = [cells for label, cells in rows if not policy or label == policy]
    return [cell for cells in (policy_rows[:1] if policy else policy_rows) for cell in cells]


def printed(headlines: list[Headline], width: int = 80) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    against.print_headlines(headlines, console)
    return file.getvalue().splitlines()


def test_few_columns_are_in_memory_at_once() -> None:
    seeds, shape = 4_000, (2, 5)
    n = seeds * math.prod(shape)
    policy, capacity = (np.repeat(np.tile(np.arange(k), r), seeds) for k, r in ((5, 2), (2, 5)))
    values = np.random.default_rng(0).random((20, n))
    named = {f"jct_p{k}_s": column for k, column in enumerate(values)}
    cells = pa.table(
        {
            "policy": pa.array([f"policy{k}" for k in policy.tolist()]).dictionary_encode(),
            "trace": pa.array(["t"] * n).dictionary_encode(),
            "capacity": 1.0 + capacity,
            "seed": np.tile(np.arange(seeds), math.prod(shape)),
            "status": pa.array(["done"] * n).dictionary_encode(),
            **named,
        }
    )
    about = {"swept": (), "baseline": "policy0"}
    summarise(cells, **about)  # type: ignore[arg-type] # imports what it needs
    tracemalloc.start()
    try:
        contrasts.compare(cells, **about)  # type: ignore[arg-type]
        summarise(cells, **about)  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_COLUMNS * 8 * n


def test_each_policy_is_paired_with_the_baseline_by_seed() -> None:
    cells = frames.frame(seeds=SEEDS)
    rows = compared(cells)
    assert len(rows) == 3 * 3 * 2  # policies but the baseline, capacities, contrasts
    las = [r for r in rows if (r["policy"], r["capacity"]) == ("las", 0.75)]
    assert [(r["metric"], r["statistic"]) for r in las] == [
        ("jct_speedup_mean", "ratio"),
        ("jct_mean_s", "difference"),
    ]
    own, base = (
        [frames.metrics_of(policy, 0.75, seed) for seed in SEEDS] for policy in ("las", "fifo")
    )
    expected = stats.difference([m["jct_mean_s"] for m in own], [m["jct_mean_s"] for m in base])
    assert las[1]["estimate"] == expected.estimate
    assert (las[1]["low"], las[1]["high"], las[1]["p"]) == (expected.low, expected.high, expected.p)
    ratios = stats.ratio([m["jct_speedup_mean"] for m in own], np.ones(8))
    assert las[0]["estimate"] == ratios.estimate
    p = np.array([r["p"] for r in rows], dtype=np.float64)
    np.testing.assert_array_equal([r["p_holm"] for r in rows], stats.holm(p))


def test_one_pair_is_exact_where_no_seed_changes_anything() -> None:
    cells = frames.frame(seeds=[0], capacities=[1.0])
    assert {row["test"] for row in compared(cells)} == {"few"}
    assert {row["test"] for row in compared(cells, is_fixed=True)} == {"exact"}
    lines = printed(shown(cells, is_fixed=True), 200)
    assert lines[-1] == "exact: no seed changes anything; there is nothing to test"
    assert "too few" not in "".join(lines)


def test_the_order_of_rows_changes_nothing() -> None:
    cells = frames.frame(seeds=SEEDS, traces=["a", "b"])
    order = np.random.default_rng(1).permutation(cells.num_rows)
    mixed = contrasts.compare(cells.take(order), swept=(), baseline="fifo")
    assert mixed is not None

    def by_label(row: dict[str, object]) -> str:
        return repr([row[key] for key in ("trace", "capacity", "policy", "metric")])

    table = sorted(mixed.to_pylist(), key=by_label)
    assert repr(table) == repr(sorted(compared(cells), key=by_label))


def test_a_failed_cell_leaves_its_pair_out() -> None:
    rows = compared(frames.frame(seeds=SEEDS, failed=[("las", 0.5, 1), ("fifo", 1.0, 3)]))
    n = {(r["policy"], r["capacity"]): r["n_pairs"] for r in rows if r["statistic"] == "difference"}
    assert n["las", 0.5] == 7
    assert n["sjf", 0.5] == 8
    assert {n[policy, 1.0] for policy in ("sjf", "las", "srpt")} == {7}
    (headline,) = shown(frames.frame(seeds=SEEDS, failed=[("las", 0.5, 1)]))
    assert "n=7" in cells_of(headline, "las")[1].mark


def test_several_traces_are_also_pooled() -> None:
    cells = frames.frame(seeds=SEEDS, traces=["a", "b"], capacities=[1.0])
    titles = [headline.table.title for headline in shown(cells)]
    assert titles == ["all traces together", "a", "b"]
    together = [r for r in compared(cells) if r["trace"] == contrasts.ALL_TRACES]
    assert {r["metric"] for r in together} == {"jct_speedup_mean"}  # seconds are not averaged
    assert {r["n_pairs"] for r in together} == {16}


def test_variants_of_the_baseline_have_matching_policies() -> None:
    extra = [{"policy.levels": levels} for levels in (5, 10)]
    cells = frames.frame(policies=["fifo", "las"], extra=extra, seeds=SEEDS, capacities=[1.0])
    base = pa.array([100.0 if row["policy.levels"] == 5 else 200.0 for row in cells.to_pylist()])
    own = pa.array([float(row["seed"]) for row in cells.to_pylist()])
    is_base = pa.array([row["policy"] == "fifo" for row in cells.to_pylist()])
    index = cells.column_names.index("jct_mean_s")
    column = pa.compute.if_else(is_base, base, own)
    cells = cells.set_column(index, "jct_mean_s", column)
    rows = compared(cells, swept=["policy.levels"])
    change = {r["policy"]: r["estimate"] for r in rows if r["metric"] == "jct_mean_s"}
    assert change == {"las levels=5": 3.5 - 100.0, "las levels=10": 3.5 - 200.0}


def test_chosen_metrics_are_compared_by_their_kind() -> None:
    chosen = ["jct_p99_s", "utilization", "jct_speedup_p50"]
    rows = compared(frames.frame(seeds=SEEDS, capacities=[1.0]), chosen=chosen)
    requested = list(dict.fromkeys((r["metric"], r["statistic"]) for r in rows))
    assert sorted(requested) == [
        ("jct_p99_s", "difference"),
        ("jct_p99_s", "ratio"),
        ("jct_speedup_p50", "ratio"),
        ("utilization", "difference"),
    ]
    srpt = next(r for r in rows if (r["policy"], r["metric"]) == ("srpt", "jct_p99_s"))
    assert srpt["estimate"] == pytest.approx(3.0, rel=0.1)  # times better, not times longer


def test_without_a_baseline_there_is_nothing() -> None:
    assert contrasts.compare(frames.frame(), swept=(), baseline=None) is None
    assert contrasts.compare(frames.frame(policies=["fifo"]), swept=(), baseline="fifo") is None
    assert shown(frames.frame(), baseline=None) == []
    assert against.to_markdown([]) == ""


def test_few_seeds_are_reported() -> None:
    (headline,) = shown(frames.frame(seeds=[0, 1]))
    text = "\n".join(printed([headline]))
    assert "[" not in text.split("\n2 seeds")[0]
    assert "n.s." not in text
    assert "2 seeds: too few for intervals and tests; 3 or more give them" in text
    assert {cell.style for cell in cells_of(headline)} == {"unsure"}


def test_five_pairs_have_intervals_and_a_test() -> None:
    (headline,) = shown(with_jct("las", [-5.0, -5.1, -5.2, -5.3, -4.9]), chosen=["jct_mean_s"])
    assert {cell.mark for cell in cells_of(headline)} == {""}
    text = "\n".join(printed([headline], 160))
    assert "[95% interval]" in text
    assert "(Student's test, Holm's correction over 2 comparisons)" in text


def test_a_difference_that_only_the_correction_leaves_untold_is_explained() -> None:
    (headline,) = shown(with_jct("las", [-5.0, -2.0, -6.0, 0.0, -3.0]), chosen=["jct_mean_s"])
    (untold,) = [note for note in headline.notes if note.startswith("n.s. beside an interval")]
    assert "where there are 2;" in untold
    assert {cell.mark for cell in cells_of(headline)} == {" n.s."}
    for values in ([-5.0, -5.1, -5.2, -5.3, -4.9], [-5.0, 6.0, -5.5, 4.5, 5.2]):
        (headline,) = shown(with_jct("las", values), chosen=["jct_mean_s"])
        assert not [note for note in headline.notes if note.startswith("n.s. beside")]


def test_policies_that_tie_exactly_everywhere_are_still_compared() -> None:
    (headline,) = shown(with_jct("las", [0.0, 0.0, 0.0]))
    assert [cell.line() for cell in cells_of(headline)] == ["+0 s exact"]


def with_jct(policy: str, values: list[float]) -> pa.Table:
    cells = frames.frame(policies=["fifo", policy], capacities=[1.0], seeds=range(len(values)))
    rows = cells.to_pylist()
    jct = [100.0 if row["policy"] == "fifo" else 100.0 + values[row["seed"]] for row in rows]
    cells = cells.select([*cells.column_names[:5], "key"])
    return cells.append_column("jct_mean_s", pa.array(jct))


@pytest.mark.parametrize(
    ("values", "mark", "side"),
    [
        ([-5.0, -6.0, -5.5, -4.5, -5.2, -5.8], "", "better"),
        ([5.0, 6.0, 5.5, 4.5, 5.2, 5.8], "", "worse"),
        ([-5.0, 6.0, -5.5, 4.5, 5.2, -5.8], "n.s.", ""),
        ([2.0] * 6, "exact", "worse"),
        ([0.0] * 6, "exact", ""),
        ([-5.0, -5.1, -5.2, -5.3, -90.0], "n.s.", ""),
    ],
)
def test_marks(values: list[float], mark: str, side: str) -> None:
    cells = with_jct("las", values)
    (headline,) = shown(pa.concat_tables([cells, with_jct_other(cells)]))
    (cell,) = cells_of(headline, "las")
    assert (cell.mark.strip(), cell.style) == (mark, side or "unsure")


def with_jct_other(cells: pa.Table) -> pa.Table:
    """Add a policy with plain differences, so that comparisons are of several kinds."""
    own = with_jct("sjf", [-1.0, -1.5, -0.5, -1.2, -0.8, -1.1])
    return own.filter(pa.compute.equal(own["policy"], "sjf")).select(cells.column_names)


def test_no_line_exceeds_the_terminal() -> None:
    cells = frames.frame(seeds=SEEDS)
    headlines = shown(cells, chosen=["jct_mean_s", "jct_p99_s", "utilization"])
    for width in (60, 80, 120):
        lines = printed(headlines, width)
        table = itertools.takewhile(lambda line: not line.startswith("geometric"), lines)
        assert max(map(len, table)) <= width
    narrow, wide = ("\n".join(printed(headlines, width)) for width in (60, 400))
    assert narrow.count("against fifo") > wide.count("against fifo") == 1
    for (head,) in headlines[0].table.heads:  # nothing is left out
        assert head in narrow


def test_markdown_has_the_same_numbers_and_p() -> None:
    (headline,) = shown(frames.frame(seeds=SEEDS))
    text = against.to_markdown([headline]).replace("\\", "")
    for cell in cells_of(headline):
        assert cell.line() in text
        assert f"({cell.small})" in text


@pytest.mark.parametrize(
    ("metric", "statistic", "values", "expected"),
    [
        ("jct_mean_s", "ratio", (2.844, 2.1, 3.9), ("2.84×", "[2.10, 3.90]")),
        ("jct_mean_s", "difference", (-270.31, -410.0, 3.0), ("-270.3 s", "[-410.0, +3.0]")),
        ("jct_mean_s", "difference", (-0.01, -41.0, 43.0), ("-0.01 s", "[-41.00, +43.00]")),
        ("value_attained", "difference", (0.0123, 0.004, 0.02), ("+1.2 pp", "[+0.4, +2.0]")),
        ("jct_mean_s", "difference", (0.0, math.nan, math.nan), ("+0 s", "")),
        ("jct_mean_s", "difference", (math.nan, math.nan, math.nan), ("", "")),
    ],
)
def test_formats(
    metric: str, statistic: str, values: tuple[float, float, float], expected: tuple[str, str]
) -> None:
    assert format_contrast(metric, statistic, *values) == expected
