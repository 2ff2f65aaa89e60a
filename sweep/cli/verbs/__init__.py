"""The verbs of ``python -m sweep``.

A verb is a function of its name, ``verb(command) -> exit code``, whose docstring ``--help`` shows,
the first line in the overview; ``verb_arguments(parser)`` beside it adds its flags. It raises
`sim.base.errors.InputError` for what is wrong.
"""

VERBS = {
    "run": "run",
    "plan": "plan",
    "status": "show",
    "show": "show",
    "retry": "run",
    "report": "report",
    "verify": "verify",
    "track": "run",
    "reproduce": "reproduce",
}
"""In which module of this package each is."""
