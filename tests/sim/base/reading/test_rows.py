"""Delimited text: fields of a layout."""

from __future__ import annotations

import io

import pytest

from sim.base.errors import InputError
from sim.base.reading import Field, Layout, read_columns


def test_a_field_that_is_no_column_of_the_layout_is_named():
    fields = {"start_s": Field("number"), "stopp_s": Field("number")}
    layout = Layout(("start_s", "stop_s"))
    with pytest.raises(InputError) as caught:
        read_columns("log.csv", io.BytesIO(b"1,2\n"), layout, fields, "error", {})
    assert str(caught.value) == (
        "log.csv: unknown column 'stopp_s'; did you mean 'stop_s'? valid: start_s, stop_s; a "
        "reader's fields must be columns of its layout [missing column]"
    )
