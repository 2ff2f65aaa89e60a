"""``python -m sim``."""

import signal
import sys

from sim.base import interrupt

if __name__ == "__main__":
    interrupt.install(signal.SIGINT)  # before the seconds that imports may take
    from sim.cli.main import main

    interrupt.finish(main(sys.argv[1:]), signal.SIGINT)
