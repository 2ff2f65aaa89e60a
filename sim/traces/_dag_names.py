"""Dependencies written in names: ``R4_2_3`` is task 4 of its job and waits for tasks 2 and 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import I4, I8

_DAG_NAME = r"^[A-Za-z]+(?P<number>[0-9]{1,9})(?P<parents>(?:_(?:Stg)?[0-9]{1,9})*)_?$"


@dataclass(frozen=True)
class DagNames:
    """What N names say."""

    number: I4  # the task's own number in its job; -1 for a name that is not of the DAG form
    row: I8  # names that name a parent, ascending, one entry a parent
    parent: I4  # the number of that parent


def parse(names: pa.StringArray) -> DagNames:
    """Read the dependencies out of task names of the Alibaba trace.

    A name of the DAG form is letters (the type), the task's number, then after underscores the
    numbers of its parents: ``M1``, ``R2_1``, ``J3_1_2``. A parent may be written ``Stg8`` for 8,
    and a name cut off after an underscore counts as far as it goes (the trace cuts at 50
    characters). Any other name (``task_Nzg3==``, ``MergeTask``) has no number and no parents.
    """
    coded = names.dictionary_encode()
    code = coded.indices.to_numpy()
    parts = pc.extract_regex(coded.dictionary, _DAG_NAME)
    number = _whole(pc.fill_null(pc.struct_field(parts, "number"), "-1"))
    listed = pc.fill_null(pc.struct_field(parts, "parents"), "")
    listed = pc.utf8_ltrim(pc.replace_substring(listed, "Stg", ""), "_")
    named = pc.not_equal(listed, "")
    size = np.zeros(len(number), np.int64)
    split = pc.split_pattern(listed.filter(named), "_")
    size[named.to_numpy(zero_copy_only=False)] = pc.list_value_length(split).to_numpy()
    parent = _whole(pc.list_flatten(split))
    first = np.cumsum(size) - size
    per_row = size[code]
    row = np.repeat(np.arange(len(code)), per_row)
    within = np.arange(len(row)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    return DagNames(number[code], row, parent[first[code[row]] + within])


def _whole(texts: pa.Array) -> I4:
    whole: I4 = texts.cast(pa.int32()).to_numpy(zero_copy_only=False)
    return whole
