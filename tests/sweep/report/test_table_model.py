"""Tables and special characters in Markdown."""

import pytest

from sweep.report import table_model


def test_numbers_align_right_and_texts_left() -> None:
    header = ("figure", "what", "ours", "paper", "verdict")
    rows = [
        ("tpcds_stream", "tez_cp, p50", "-0.564", "27.8", "differs"),
        ("", "worst_", "1,234", "5 at most", ""),
        ("", "", "nan", "", ""),
        ("", "", "1.5e-07", "", ""),
    ]
    lines = table_model.to_markdown(table_model.from_texts(header, rows, kind="texts")).splitlines()
    assert lines[:4] == [
        "| figure | what | ours | paper | verdict |",
        "| --- | --- | ---: | --- | --- |",
        "| tpcds_stream | tez_cp, p50 | -0.564 | 27.8 | differs |",
        "|  | worst\\_ | 1,234 | 5 at most |  |",
    ]
    assert "| --- | ---: |" in table_model.to_markdown(
        table_model.from_texts(("a", "b"), [("x", "y")])
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("tez_cp", "tez_cp"),
        ("a__b_1", "a__b_1"),
        ("_a_", r"\_a\_"),
        ("__a", r"\_\_a"),
        ("a_ b", r"a\_ b"),
        ("trace._x", r"trace.\_x"),
        ("*|<`", r"\*\|\<\`"),
        (r"\_", r"\\\_"),
    ],
)
def test_special_characters_are_escaped(text: str, written: str) -> None:
    assert table_model.escape_markdown(text) == written
