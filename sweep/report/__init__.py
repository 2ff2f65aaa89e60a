"""Report of a sweep: a Markdown file and a self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from sim.base import html
from sim.base.masking import mask, mask_tree
from sweep.grid.config_tree import abbreviated, to_yaml
from sweep.report import findings as report_findings
from sweep.report import first_screen, overview, table, table_model
from sweep.report import headlines as headline_tables
from sweep.report import page as report_page
from sweep.report.contribution import Contribution
from sweep.report.headlines import Headline
from sweep.report.section import Section, to_markdown
from sweep.report.terminal import MAX_SENTENCES
from sweep.stats import contrasts, done_jobs, reading, troubles
from sweep.stats import verdict as judging
from sweep.stats.cell_columns import chosen_metrics, shown_metrics, table_options
from sweep.stats.cell_columns import text as shortest
from sweep.stats.summary import Summary, summarise
from sweep.stats.verdict import Verdict
from sweep.store.cache import Cache
from sweep.store.folder import (
    ANSWER,
    CONTRASTS,
    DONE_JOBS,
    HTML,
    MARKDOWN,
    READ,
    TABLE,
    VERDICT,
    SweepFolder,
)

_TEMPLATES = Path(__file__).parent / "templates"
NOTHING = Contribution()


def write_all(
    folder: SweepFolder,
    cells: pa.Table,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    *,
    cache: Cache | None = None,
    gantt: int | None = None,
    added: Contribution = NOTHING,
) -> None:
    """Write the tables and the report, with the metrics that the sweep's configuration names.

    See `write` for `cache` and `gantt`; the default cache is that of the results folder. `added` is
    what plug-ins add.
    """
    n_cells = len(cells)
    cells = cells if added.cells is None else added.cells
    answering = [section for section in added.sections if section.is_answer]
    answers = [sentence for section in answering for sentence in section.sentences]
    answers = [*added.lead, *answers] if answers else []
    sections = (*added.sections, *(added.beside_answers if answering else ()))
    shown = shown_metrics(cells, config)
    swept, baseline = config["swept"], config["baseline"]
    # where jobs failed, policies are compared on the jobs that all of them finish
    compared = done_jobs.compared(cells, folder.table(DONE_JOBS))
    comparisons = contrasts.compare(
        shown_metrics(compared, config), chosen=chosen_metrics(config), **table_options(config)
    )
    folder.replace(CONTRASTS, comparisons)
    logs = reading.readings(config, provenance)
    verdict_list = reading.in_verdicts(judging.verdicts(compared, config), logs)
    verdict_list = judging.with_remarks(verdict_list, added.remarks)
    answer_field = {"answer": answers} if answers else {}
    entries = [verdict.as_json() | answer_field for verdict in verdict_list]
    folder.replace_json(VERDICT, [{**e, **added.verdict.get(e["trace"], {})} for e in entries])
    headlines = headline_tables.headlines(comparisons, baseline)
    summary = summarise(shown, **table_options(config))
    finished = first_screen.Sweep(
        summary,
        verdict_list,
        config,
        provenance,
        sections,
        added.remarks,
        logs,
        troubles.unmet(cells, config),
        added.lead,
        n_cells,
    )
    answer = first_screen.build(finished)
    fields = {READ: [log.as_json() for log in logs], **added.answer}
    folder.replace_json(ANSWER, {**answer, **fields})
    texts = [
        *map(to_markdown, sections),
        table.to_markdown(summary),
        headline_tables.to_markdown(headlines),
    ]
    folder.replace_text(TABLE, "\n".join(filter(None, texts)))
    write(
        folder,
        shown,
        config,
        provenance,
        swept=swept,
        baseline=baseline,
        findings=folder.findings(),
        headlines=headlines,
        verdicts=() if answering else verdict_list,
        cache=cache or Cache(folder.results),
        gantt=gantt,
        sections=sections,
        answer=answer,
    )


def write(
    folder: SweepFolder,
    cells: pa.Table,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    *,
    swept: Sequence[str] = (),
    baseline: str | None = None,
    findings: pa.Table | None = None,
    headlines: Sequence[Headline] = (),
    verdicts: Sequence[Verdict] = (),
    cache: Cache | None = None,
    gantt: int | None = None,
    sections: Sequence[Section] = (),
    answer: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> tuple[Path, Path]:
    """Write ``report.md`` and ``report.html`` into a sweep's folder.

    Both open with `answer` (`sweep.report.first_screen`), the verdict, a picture of all policies at
    all capacities, and the Pareto front of mean and tail. They hold every metric per policy and
    capacity, the failed cells with the commands that reproduce them, the grid, the configuration
    and the provenance. The HTML file also plots each metric against capacity; it loads nothing over
    the network. `sections` of other modules (targets, searches) come before the tables.
    """
    is_fixed = bool(config.get("is_fixed"))
    summary = summarise(cells, swept=swept, baseline=baseline, is_fixed=is_fixed)
    environment = html.environment(_TEMPLATES)
    environment.filters |= {"shortest": shortest, "escaped": table_model.escape_markdown}
    context = _context(summary, config, provenance, f"Sweep {folder.sweep}")
    context["grid"] = _grid_axes(summary, cells, swept)
    context["study"] = _study(config, findings)
    drawn = overview.pictures(verdicts)
    context |= {"headlines": headlines, "baseline": baseline, "pictures": drawn}
    context["sentences"] = [verdict.sentence for verdict in verdicts]
    context["most_sentences"] = MAX_SENTENCES
    context["answer"] = answer
    job_data = report_page.read_jobs(cells, cache, gantt, swept, baseline)
    pages = {
        MARKDOWN: environment.get_template("report.md.j2").render(
            context
            | {
                "sentences": [
                    table_model.escape_markdown(sentence) for sentence in context["sentences"]
                ]
            },
            overview=overview.to_markdown(drawn, summary),
            tables=table.to_markdown(summary, level=3),
            section_texts="\n".join(map(to_markdown, sections)),
            headline_tables=headline_tables.to_markdown(headlines),
        ),
        HTML: environment.get_template("report.html.j2").render(
            context, **report_page.context(summary, findings, job_data, sections, verdicts)
        ),
    }
    for name, text in pages.items():
        folder.replace_text(name, text)
    return folder.path / MARKDOWN, folder.path / HTML


def _context(
    summary: Summary, config: Mapping[str, Any], provenance: Mapping[str, Any], title: str
) -> dict[str, Any]:
    masked = mask_tree(provenance)
    facts = {key: _in_line(value) for key, value in masked.items() if _is_short(value)}
    long_values = {key: value for key, value in masked.items() if key not in facts}
    return {
        "title": title,
        "lead": table.headline(summary),
        "failures": [
            {
                "cell": failure.cell,
                "stage": failure.stage,
                "error": mask(": ".join(filter(None, (failure.type, failure.message)))),
                "reproduce": mask(failure.reproduce),
            }
            for failure in summary.failures
        ],
        "n_failures_left": summary.n_failed - len(summary.failures),
        "config": to_yaml(mask_tree(config)),
        "facts": facts,
        "texts": {
            key: value if isinstance(value, str) else to_yaml(value)
            for key, value in long_values.items()
        },
    }


def _grid_axes(summary: Summary, cells: pa.Table, swept: Sequence[str]) -> dict[str, str]:
    """Describe the grid: an entry for each axis."""
    seeds = abbreviated(summary.seeds)
    axes = {
        "Policies": dict.fromkeys(column.policy for column in summary.columns),
        "Traces": dict.fromkeys(block.trace for block in summary.blocks),
        "Capacities": map(shortest, summary.capacities),
        "Seeds": [seeds] if isinstance(seeds, str) else map(str, seeds),
    }
    rows = {name: ", ".join(values) for name, values in axes.items()}
    for key in swept:
        if key in cells.column_names:
            # not the dictionary's values: it may hold values of rows that are not shown
            values = cells.column(key).unique().to_pylist()
            rows[key] = ", ".join(str(value) for value in values if value is not None)
    if summary.baseline:
        rows["Baseline"] = summary.baseline
    n_failed = summary.n_failed
    rows["Cells"] = f"{summary.n_cells}" + (f", {n_failed} failed" if n_failed else "")
    return rows


def _study(config: Mapping[str, Any], figures: pa.Table | None) -> dict[str, Any] | None:
    """Return the study's figures as texts, its source and its notes."""
    if figures is None:
        return None
    study = config["study"] or {}
    return {
        "sheet": report_findings.grouped(figures),
        "markdown": report_findings.to_markdown(figures),
        "beside": report_findings.source_sentence(study["source"]) if study.get("source") else "",
        "notes": study.get("notes", ""),
    }


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 20 and all(_is_short(item) for item in value)
    return not isinstance(value, Mapping) and "\n" not in str(value)


def _in_line(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
