from __future__ import annotations

import pyarrow as pa

from sweep.execution.parts import pack, unpack
from sweep.store.cell import CellError, CellResult

ERROR: CellError = {"stage": "policy", "type": "E", "message": "m", "traceback": ""}


def test_each_result_has_its_own_table_again() -> None:
    plain = pa.table({"submit_s": [1.0, 2.0], "failed": [False, True]})
    noted = plain.replace_schema_metadata({"by": "a measure"})
    sent = [
        CellResult("a", {"jct_mean_s": 1.5}, plain, seconds=0.1),
        CellResult("b", error=ERROR),
        CellResult("c", {}, noted),
        CellResult("d", {}, pa.table({})),
        CellResult("e", {}, plain.slice(1)),
        CellResult("f", {}, plain.slice(0, 0)),
    ]
    part = pack(sent)
    assert len(part.tables) == 3
    assert unpack(part) == sent
    found = unpack(part)[2].jobs
    assert found is not None
    assert found.schema.metadata == {b"by": b"a measure"}


def test_none_at_all() -> None:
    assert unpack(pack([])) == []
