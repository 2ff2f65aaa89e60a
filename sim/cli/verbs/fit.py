"""Make probability tables from a workload, so that `synth` can make more of the same."""

from __future__ import annotations

import argparse

from sim.cli.verbs._options import print_counts

HELP = "make probability tables from a workload, to synthesize more of it"
EXAMPLE = """examples:
  python -m sim fit work/mine mine.json
  python -m sim fit full_trace_histograms.json.gz tables.json --sample work/sample"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "source", metavar="IN", help="a workload's folder, or the file of published histograms"
    )
    parser.add_argument("out", metavar="OUT", help="file to write the tables to (JSON)")
    parser.add_argument(
        "--sample",
        metavar="FOLDER",
        help="with histograms: a workload that tells of edges and of attributes together",
    )
    parser.add_argument("--note", metavar="TEXT", help="where the sample is from")


def run(args: argparse.Namespace) -> None:
    """Fit, and print what was counted, dropped and pooled."""
    from sim.synth.alibaba2018.fit import fit
    from sim.synth.alibaba2018.tables_file import write_tables

    tables = fit(args.source, args.sample, args.note)
    write_tables(tables, args.out)
    print(f"fitted {args.source}")
    print(
        f"{tables.n_stages.counts.sum():,} jobs, {tables.n_tasks.counts.sum():,} stages; "
        f"{len(tables.length.cells)} tables of path lengths, {len(tables.level.cells)} of levels"
    )
    print_counts({k: tables.provenance.get(k, {}) for k in ("dropped", "changed", "pooled")})
    if tables.links is None:
        print("  no edges seen: these tables serve variant=paper only; add --sample FOLDER")
    else:
        print_counts({"pooled for edges": tables.links.provenance["pooled"]})
    print(f"written to {args.out}")
    print(f"next: python -m sim synth alibaba2018 OUT --tables {args.out}")
