"""``python -m sim``, and the console script ``cluster-sim``."""

import signal
import sys

from sim.base import interrupt


def main() -> None:
    """Run the command line of this process, and end the process with its exit code."""
    interrupt.install(signal.SIGINT)  # before the seconds that imports may take
    from sim.cli.main import main as run  # after the signals are taken over

    interrupt.finish(run(sys.argv[1:]), signal.SIGINT)


if __name__ == "__main__":
    main()
