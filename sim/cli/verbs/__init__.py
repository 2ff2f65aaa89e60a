"""The verbs of ``python -m sim``, one module each.

A verb has a docstring (what ``--help`` shows first), `HELP` (its line in the list), `EXAMPLE`,
``add_arguments(parser)`` and ``run(args)``. It prints what it did; it raises
`sim.base.errors.InputError` for what is wrong.
"""
