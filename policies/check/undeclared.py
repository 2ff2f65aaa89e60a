"""Truths that policies read but do not declare, of a list of policies, in a process of its own.

``python -m policies.check.undeclared`` reads a JSON list of policies (``name``, ``module``,
``params``) and writes as its last line a list with the quantities of each. A sweep starts it with
kernels as plain Python: the worlds are small, and compiling for them would take longer.
"""

from __future__ import annotations

import json
import sys

from policies import registry
from policies.check.suite import undeclared


def main() -> None:
    """Check the policies of standard input."""
    configured = json.load(sys.stdin)
    answer = [
        undeclared(registry.build(policy["name"], module=policy["module"], **policy["params"]))
        for policy in configured
    ]
    print(f"\n{json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    main()
