"""Verb that reads a site of Slurm or Kueue and writes its cluster, policy and jobs (site)."""

from __future__ import annotations

import argparse
from pathlib import Path

from sim.base.errors import InputError
from sim.cli import Verb, print_workload


def _add_site(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="DIR", help="folder of the site's files")
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="folder of options to write to (--config-dir)"
    )
    parser.add_argument(
        "--name", metavar="NAME", default="site", help="name of the options; default: %(default)s"
    )
    parser.add_argument(
        "--pseudonyms", metavar="FILE",
        help="replace names of users, accounts and jobs by aliases, which FILE keeps",
    )  # fmt: skip


def _site(args: argparse.Namespace) -> None:
    """Read a site; print its size, and what was not understood."""
    from sim.traces.sites import read_site  # late: `--help` answers at once
    from sim.traces.sites.pseudonyms import Pseudonyms
    from sim.traces.sites.site import LINKED, write_site

    out = Path(args.out)
    pseudonyms = Pseudonyms(Path(args.pseudonyms) if args.pseudonyms else None)
    if args.pseudonyms and out.resolve() in Path(args.pseudonyms).resolve().parents:
        raise InputError("--pseudonyms: keep the file outside of --out, which it would give away")
    site = read_site(Path(args.source), pseudonyms)
    written = write_site(site, out, args.name)
    pseudonyms.write()
    cpus, gpus = (sum(getattr(node, column) for node in site.nodes) for column in ("cpus", "gpus"))
    print(f"{len(site.nodes):,} nodes, {cpus:,.10g} CPUs, {gpus:,.10g} GPUs, of {site.scheduler}")
    if site.workload is not None:
        print_workload(site.workload, site.log)
    for line in site.warnings:
        print(line)
    print(f"not understood or missing: {len(site.notes)}, in {out / 'not_understood.txt'}")
    for path in written:
        print(f"written to {path}")
    for link in (out / f"{group}.yaml" for group in LINKED):
        if link not in written:
            print(f"left out: {link}, a link to {link.stem}/{args.name}.yaml, can't be made there")
    if site.workload is not None:
        print(
            f"next: python -m sweep backtest --config-dir {out} trace={args.name} "
            f"policy={args.name}"
        )


SITE = Verb(
    "site",
    "read a site of Slurm or Kueue: cluster, policy and jobs",
    "Read a site's configuration, limits and accounting; write them as options of a sweep.",
    """example:
  python -m sim site exports --out twin
  python -m sweep backtest --config-dir twin trace=site policy=site""",
    _add_site,
    _site,
)
