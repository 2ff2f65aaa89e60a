"""The three knobs of Tian et al. (SoCC 2019, §7.4): machines, load, heterogeneity.

They work on any workload, real or synthesized. Where the paper leaves a meaning open, its
published generator is followed.
"""

from sim.knobs.amplifier import amplify
from sim.knobs.load import change_load
from sim.knobs.machines import fit_machines

__all__ = ["amplify", "change_load", "fit_machines"]
