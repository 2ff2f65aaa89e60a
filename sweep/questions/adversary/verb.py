"""Verb ``adversary``: where a policy loses most against another."""

from __future__ import annotations

import argparse
from typing import Any

from sim.base.errors import InputError
from sweep.cli.command import Command
from sweep.grid.options import Options
from sweep.grid.overrides import parse

OWN: dict[str, type] = {
    "metric": str,
    "evaluations": int,
    "seconds": float,
    "seed": int,
    "jobs": int,
    "tasks": int,
}
KEYS = ("against", "out", *OWN)


def adversary_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = (
        f"{parser.prog} policy=A against=B trace=GENERATOR ['trace.KEY=interval(1,9)'] "
        "[metric=NAME] [evaluations=4000] [seconds=600] [seed=0] [jobs=8] [tasks=10] [out=DIR] "
        "[key=value ...] [flags]"
    )
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of your own options",
    )
    parser.epilog = (
        "It draws workloads, changes the worst of them by simulated annealing, and makes the worst "
        "small. out has instance/, a timeline and a record; by default this folder."
    )


def adversary(command: Command) -> int:
    """Search for the workload on which a policy loses most against another."""
    from sweep.questions.adversary import answer, search  # brings numba

    if command.names:
        raise InputError(f"adversary takes key=value alone, not {command.names[0]}", rule="grammar")
    lines = parse(command.overrides, Options().names_swept)
    own = {line.key: line for line in lines}
    if "policy" not in own or "against" not in own:
        raise InputError("adversary needs policy=A and against=B", rule="grammar")
    parameters = [line.text for line in lines if line.key.startswith("policy.")]
    words = [line.text for line in lines if line.key.split(".")[0] not in ("policy", *KEYS)]
    loss = search.search(
        search.Question(
            " ".join([str(own["policy"].value), *parameters]),
            str(own["against"].value),
            words,
            config_dir=command.flags.config_dir,
            **{key: _typed(key, own[key].value) for key in OWN if key in own},
        )
    )
    print(answer.sentence(loss))
    for path in answer.write(loss, str(own["out"].value) if "out" in own else "."):
        print(path)
    return 0


def _typed(key: str, value: Any) -> Any:
    kind = OWN[key]
    try:
        typed = kind(value)
    except (TypeError, ValueError):
        raise InputError(f"{key} must be of type {kind.__name__}, not {value!r}") from None
    if kind is not str and typed < (0 if key == "seed" else 1e-9):
        raise InputError(f"{key} must be positive, not {value!r}")
    return typed
