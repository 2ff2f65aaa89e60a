"""Studies that are data: an experiment says what is grouped, scaled and compared.

Its ``study`` has ``figures``, a list of parts. A part is a figure, or, where it has ``figures`` of
its own, what those have in common; it then says what each of them does not say itself. Texts may
have names in braces: columns of ``for`` and ``by``, keys of ``each``, and ``experiment``; after a
colon stands a format, such as ``{capacity:g}``, or ``words``, which makes spaces of underscores.

======================  ===========================================================================
``figure``, ``what``    what a finding is called
``for``                 of a part with figures: these are made for each value of these columns
``by``                  one finding for each value of these columns
``each``                one finding for each of some names: ``{name: [values]}``, or a list of such
``where``               of which cells: ``{column: value}``, one of a list, ``{above: n}`` or
                        ``{at_most: n}``
``metric``              the column; it is multiplied by ``scale``, and ``plus`` is added
``optional``            cells without a number are left out, and figures without cells
``statistic``           ``mean`` (with its interval), ``median``, ``p75`` or ``count`` of the
                        values, or of those ``above`` a number
``against``             which cells those of the same seed are compared with, as in ``where``
``compare``             how: ``less`` (a - b), ``ratio`` (a / b), ``gain`` (1 - a / b), or ``means``
                        (the ratio of both means, whatever the seeds)
``paper``               keys of the paper's number, of `sim.published`, the paper first
``formula``             in place of it, a column that has what a formula says
``at_least``, ``at_most``, ``within``   what is wanted; the last, as a part of the paper's number
======================  ===========================================================================
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sim.base.errors import InputError, unknown
from sim.published import numbers
from sweep.report.findings import Finding, Finished
from sweep.stats import interval

Row = Mapping[str, Any]
Names = Mapping[str, Any]  # what stands for a name in braces

COMPARE: dict[str, Callable[[float, float, float], float]] = {
    "less": lambda scale, a, b: scale * (a - b),
    "ratio": lambda scale, a, b: scale * a / b,
    "gain": lambda scale, a, b: scale * (1.0 - a / b),
}
MEANS = "means"
_KINDS: tuple[tuple[Any, str, str], ...] = (
    (str, "a text", "figure what metric statistic compare formula"),
    (int | float, "a number", "scale plus above at_least at_most within"),
    (list, "a list", "figures for by paper"),
    (Mapping, "a mapping", "where against"),
    (Mapping | list, "a mapping or a list", "each"),
    (bool, "true", "optional"),
)
KEYS = {key: (kind, words) for kind, words, keys in _KINDS for key in keys.split()}
_NAME = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")
_STATISTIC = re.compile(r"mean|median|count|p(\d+|\{.*\})")


def find(figures: Sequence[Row], finished: Finished) -> list[Finding]:
    """Make the findings of a sweep that is over."""
    experiment = str(finished.config.get("experiment")).rpartition("/")[2]
    whole = {"figures": figures}
    return list(_of_part(whole, finished.cells, {"experiment": experiment}))


def _of_part(part: Row, cells: Sequence[Row], names: Names) -> Iterator[Finding]:
    if "figures" not in part:
        yield from _of_figure(part, cells, names)
        return
    common = {key: value for key, value in part.items() if key not in ("figures", "for")}
    for group, of_group in _groups(part.get("for", ()), cells):
        for inner in part["figures"]:
            yield from _of_part({**common, **inner}, of_group, {**names, **group})


def _of_figure(part: Row, cells: Sequence[Row], names: Names) -> Iterator[Finding]:
    for repeated in _repeated(part.get("each")):
        known = {**names, **repeated}
        chosen = [row for row in cells if _fits(row, part.get("where", {}), known)]
        others = [row for row in cells if _fits(row, part.get("against", {}), known)]
        for group, of_group in _groups(part.get("by", ()), chosen):
            everything = {**known, **group}
            values = _values(part, of_group, others, everything)
            if values is not None:
                yield _finding(part, values, of_group, everything)


def _groups(columns: Sequence[str], cells: Sequence[Row]) -> list[tuple[Names, list[Row]]]:
    """Group cells by columns, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in cells:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return [(dict(zip(columns, key, strict=True)), of) for key, of in groups.items()]


def _repeated(each: Any) -> list[Names]:
    if each is None:
        return [{}]
    if isinstance(each, Mapping):
        return [dict(zip(each, row, strict=True)) for row in itertools.product(*each.values())]
    return list(each)


def _fits(row: Row, wanted: Row, names: Names) -> bool:
    return all(_is(row[column], value, names) for column, value in wanted.items())


def _is(value: Any, wanted: Any, names: Names) -> bool:
    if isinstance(wanted, Mapping):
        above, at_most = wanted.get("above", -math.inf), wanted.get("at_most", math.inf)
        return bool(above < value <= at_most)
    options = wanted if isinstance(wanted, list) else [wanted]
    return any(str(value) == _text(str(option), names) for option in options)


def _values(
    part: Row, cells: Sequence[Row], others: Sequence[Row], names: Names
) -> list[float] | None:
    """Return what a finding is of; None where there is nothing to compare with."""
    if part.get("statistic") == "count":
        return [1.0] * len(cells)
    metric, scale = _text(part["metric"], names), part.get("scale", 1.0)
    compare = part.get("compare")
    if compare is not None and not others:
        return None
    if compare == MEANS:
        means = [interval([scale * row[metric] for row in of])[0] for of in (cells, others)]
        return [_ratio(*means)]
    if compare is not None:
        mine, other = ({row["seed"]: row[metric] for row in of} for of in (cells, others))
        shared = sorted(mine.keys() & other.keys())
        return [COMPARE[compare](scale, mine[seed], other[seed]) for seed in shared]
    if "optional" in part:
        cells = [row for row in cells if row.get(metric) is not None and row[metric] == row[metric]]
        if not cells:
            return None
    values = [scale * row[metric] for row in cells]
    return [value + part["plus"] for value in values] if "plus" in part else values


def _ratio(more: float, less: float) -> float:
    """Return the ratio; two zeros are as much as each other."""
    if less == 0.0:
        return 1.0 if more == 0.0 else math.inf
    return more / less


def _finding(part: Row, values: list[float], cells: Sequence[Row], names: Names) -> Finding:
    number, paper = _printed(part, cells, names)
    wanted = {key: part[key] for key in ("at_least", "at_most") if key in part}
    if "within" in part and number is not None:
        within = part["within"]
        wanted = {"at_least": number * (1 - within), "at_most": number * (1 + within)}
    figure, what = _text(part["figure"], names), _text(part["what"], names)
    statistic = _text(part.get("statistic", "mean"), names)
    if statistic == "mean":
        return Finding.of(figure, what, values, paper=paper, **wanted)
    values = [value for value in values if value > part.get("above", -math.inf)]
    return Finding(figure, what, _statistic(statistic, values), paper=paper, **wanted)


def _statistic(name: str, values: Sequence[float]) -> float:
    if name == "count":
        return float(len(values))
    if not values:
        return math.nan
    return float(np.median(values) if name == "median" else np.percentile(values, float(name[1:])))


def _printed(part: Row, cells: Sequence[Row], names: Names) -> tuple[float | None, str]:
    """Return the paper's number, and how it is shown; nothing where the paper has none."""
    if "formula" in part:
        value = float(cells[0][_text(part["formula"], names)])
        return value, f"{value:.4g}"
    value = _published(*(_text(str(key), names) for key in part.get("paper", ())))
    return None if isinstance(value, str) else value, shown(value)


def printed(*keys: str) -> str:
    """Return a paper's number as it is shown: nothing where there is none under these keys."""
    return shown(_published(*keys))


def shown(value: float | str | None) -> str:
    """Show a number as it is printed."""
    return f"{value:g}" if isinstance(value, int | float) else value or ""


def _published(paper: str = "", *keys: str) -> Any:
    value: Any = numbers(paper) if keys else None
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(template: str, names: Names) -> str:
    """Put names in."""

    def named(match: re.Match[str]) -> str:
        value, how = names[match[1]], match[2] or ""
        return str(value).replace("_", " ") if how == "words" else format(value, how)

    return _NAME.sub(named, template)


def check(figures: Any) -> None:
    """Refuse what says no figures."""
    _check_part({"figures": figures}, {}, {"experiment"})


def _check_part(part: Any, common: Row, known: set[str]) -> None:
    """Check a part, given what the parts that it is in have in common, and the names they have."""
    if not isinstance(part, Mapping):
        raise InputError(f"figures: {part!r} is not {{key: value}}")
    for key, value in part.items():
        _check_key(str(key), value)
    whole = {**common, **part}
    known = known | {str(name) for name in part.get("for", ())}
    if "figures" in part:
        inner = {key: value for key, value in whole.items() if key not in ("figures", "for")}
        for one in part["figures"]:
            _check_part(one, inner, known)
        return
    needed = {"figure", "what"} | ({"metric"} if whole.get("statistic") != "count" else set())
    needed |= {"against"} if "compare" in whole else set()
    for key in sorted(needed - whole.keys()):
        raise InputError(f"figures: {dict(part)} has no {key}")
    each = _repeated(whole.get("each"))
    known |= {*whole.get("by", ()), *(name for row in each for name in row)}
    for text in _texts(whole):
        for match in _NAME.finditer(text):
            if match[1] not in known:
                raise InputError(unknown("name in braces", match[1], sorted(known)))
    paper: Any = None
    for key in itertools.takewhile(lambda key: not _NAME.search(str(key)), whole.get("paper", ())):
        paper = numbers(key) if paper is None else paper[key]


def _check_key(key: str, value: Any) -> None:
    if key not in KEYS:
        raise InputError(unknown("key of figures", key, KEYS))
    kind, words = KEYS[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"figures: {key}={value!r} is not {words}")
    if key == "compare" and value not in (*COMPARE, MEANS):
        raise InputError(unknown("compare of figures", value, (*COMPARE, MEANS)))
    if key == "statistic" and not _STATISTIC.fullmatch(value):
        known = ("mean", "median", "p75", "count")
        raise InputError(unknown("statistic of figures", value, known))


def _texts(value: Any) -> Iterator[str]:
    """Go over the texts in a part, its figures' aside."""
    if isinstance(value, Mapping):
        value = [inner for key, inner in value.items() if key not in ("figures", "each")]
    if isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
