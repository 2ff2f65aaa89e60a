"""A strategy that runs the first cells of a grid, and a section that counts the rows."""

from dataclasses import dataclass, replace

from sweep.execution.strategy import Batch
from sweep.grid import grid
from sweep.grid.goal import Goal
from sweep.report.contribution import Contribution
from sweep.report.section import Section

ORDER = 90
KEYS = ("example.first",)
HELP = ("  example.first=N     the first cells of a grid alone",)


@dataclass(frozen=True)
class First(Goal):
    """The number of cells to run."""

    n: int = 1


@dataclass(frozen=True)
class FirstCells:
    """The first cells of a grid."""

    request: object
    n: int

    @property
    def id_part(self):
        """The number of cells."""
        return self.n

    def batches(self, inputs):
        """Yield them as one batch."""
        whole = grid.build(self.request)
        part = replace(whole, cells=whole.cells[: self.n])
        yield Batch(part)
        return part

    def tables(self):
        """Nothing beside the cells."""
        return {}


def take(lines, defaults):
    """Take the key; None if it is not given."""
    line = lines.pop(KEYS[0], None)
    return None if line is None else First(n=int(line.values[0]))


def strategy(request):
    """Return the strategy if its key was given."""
    return FirstCells(request, request.goal.n) if isinstance(request.goal, First) else None


def contribute(sweep):
    """Add a section to every report."""
    return Contribution(sections=tuple(sections(sweep.folder, sweep.config)))


def sections(folder, config):
    """Return the section."""
    return [Section("example", "An example", ("This sentence is a plug-in's.",))]
