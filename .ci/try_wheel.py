"""Try the installed wheel without extras: simulate, bound, and miss an extra.

With the argument ``compiled``, the wheel must bring the kernels of these runs.
"""

import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import policies
import sim
from sim.base.errors import SimError
from sim.engine.kernels.run import is_compiled
from sim.engine.simulate import variant

for package in ("ray", "mlflow", "optuna", "pandas", "plotly", "matplotlib", "hydra"):
    assert find_spec(package) is None, f"{package} is installed without an extra"
for name in ("sim", "policies", "sweep"):
    assert (Path(sim.__file__).parents[1] / name / "py.typed").is_file(), name

workload = sim.synthesize("alibaba2018", jobs=200, seed=0)
cluster = sim.Cluster.slots(50)
if "compiled" in sys.argv[1:]:
    for name in policies.names():
        with suppress(SimError):
            features = variant(workload, cluster, policies.build(name))
            assert is_compiled(features), f"the wheel brings no kernel for {name}: {features}"
mean_s = {
    name: sim.simulate(workload, cluster, policies.build(name)).metrics["jct_mean_s"]
    for name in ("fifo", "srpt")
}
assert mean_s["srpt"] < mean_s["fifo"], mean_s
assert sim.lower_bound(workload, cluster).num_rows == 200

command = str(Path(sys.executable).parent / "cluster-sweep")
ran = subprocess.run([command, "policy=fifo"], capture_output=True, text=True)
assert ran.returncode == 2, ran
assert ran.stderr.endswith("pip install 'cluster-sweep[sweep]'\n"), ran.stderr
print(f"cluster-sweep {sim.__version__} without extras: {mean_s}")
