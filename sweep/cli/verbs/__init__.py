"""The verbs of ``python -m sweep``, one module each.

A verb has a docstring whose first line ``--help`` shows, ``add_arguments(parser)`` and
``run(command) -> exit code``. It raises `sim.base.errors.InputError` for what is wrong.
"""

VERBS = ("run", "plan", "status", "show", "retry", "report", "verify", "track", "reproduce")
