"""Verb ``ui``: the index of all sweeps and MLflow's UI in a browser."""

from __future__ import annotations

import argparse

from sim.base.errors import InputError
from sweep.cli.command import Command
from sweep.questions import ui as browser_ui
from sweep.questions.ui.mlflow_server import PORT


def ui_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    words = "[RESULTS] [--port N] [--index-port N] [--no-mlflow] [paths.results=DIR]"
    parser.usage = f"{parser.prog} {words}"
    parser.add_argument(
        "--port", type=int, help=f"MLflow's; default: the first free one from {PORT} on"
    )
    parser.add_argument("--index-port", type=int, help="the index's; default: the next free one")
    parser.add_argument(
        "--no-mlflow", action="store_true", help="the index alone: MLflow's pages have no password"
    )
    parser.epilog = "RESULTS is a folder of results, an MLflow database, or its URI."


def ui(command: Command) -> int:
    """Serve an index of all sweeps, and MLflow's UI on them, to a browser on this machine."""
    if len(command.names) > 1 or (command.names and command.overrides):
        raise InputError("name one folder of results: ui RESULTS", rule="grammar")
    source = command.names[0] if command.names else None
    # the index fetches, maybe in a process that is forked: a store's client does not outlive that
    default = "" if source else str(command.results(fetches=False))
    flags = command.flags
    return browser_ui.serve(
        source, default, flags.port, flags.index_port, with_mlflow=not flags.no_mlflow
    )
