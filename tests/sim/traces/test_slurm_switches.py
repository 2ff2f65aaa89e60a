"""Switches of a site of Slurm, as topology.conf has them, and jobs that ask for one."""

from __future__ import annotations

import pytest

import policies
import sim
from sim.cluster.domains import asked_levels
from tests.sim.traces.test_slurm_site import CONF, HEADER, column, row, site

TREE = CONF + "TopologyPlugin=topology/tree\n"
SWITCHES = """# of two racks
SwitchName=s0 Nodes=n[1-2]
switchname=s1 Nodes=big,g1 LinkSpeed=10
SwitchName=top Switches=s[0-1]
"""
NODES = "NodeName=n[1-8] CPUs=2 RealMemory=8192\n"
CONF_OF_8 = (
    "Include nodes.conf\nTopologyPlugin=topology/tree\nPartitionName=all Nodes=n[1-8] Default=YES\n"
)
DEEP = """
SwitchName=s0 Nodes=n[1-2]
SwitchName=s1 Nodes=n[3-4]
SwitchName=s2 Nodes=n[5-6]
SwitchName=left Switches=s[0-1]
SwitchName=right Switches=s2
SwitchName=top Switches=left,right,s9
SwitchName=s9 Nodes=n[7-8]
"""


def notes(read):
    return "\n".join(read.notes)


def test_leaf_switches_are_the_narrowest_level(tmp_path):
    read = site(tmp_path, slurm_conf=TREE, topology_conf=SWITCHES)
    assert read.cluster["topology"] == {
        "levels": {"leaf": {"nodes": {"s0": "n[1-2]", "s1": "big,g1"}}}, "preferred": "leaf",
    }  # fmt: skip
    assert "switches" not in notes(read)
    whole = sim.Cluster.mixed(read.cluster["shape"]).with_topology(read.cluster["topology"])
    assert whole.topology.domain.tolist() == [[0, 0, 1, 1]]


def test_switches_above_are_wider_levels(tmp_path):
    """n7 and n8 are below a leaf right under the top, which stands for the switch between them."""
    read = site(tmp_path, slurm_conf=CONF_OF_8, nodes_conf=NODES, topology_conf=DEEP)
    levels = read.cluster["topology"]["levels"]
    assert [*levels] == ["switch2", "leaf"]
    assert levels["switch2"]["nodes"] == {"left": "n[1-4]", "right": "n[5-6]", "s9": "n[7-8]"}
    assert levels["leaf"]["nodes"] == {
        "s0": "n[1-2]", "s1": "n[3-4]", "s2": "n[5-6]", "s9": "n[7-8]",
    }  # fmt: skip


def jobs(*commands, nodes=3):
    rows = [
        row(i, SubmitLine=f"sbatch {command} job.sh", NNodes=nodes, AllocCPUS=2 * nodes,
            ReqCPUS=2 * nodes, AllocTRES=f"cpu={2 * nodes},mem={nodes}G,node={nodes}",
            ReqTRES=f"cpu={2 * nodes},mem={nodes}G,node={nodes}", Partition="all",
            NodeList="n[1-3]")
        for i, command in enumerate(commands, 1)
    ]  # fmt: skip
    return "\n".join((HEADER, *rows)) + "\n"


def test_jobs_go_below_the_lowest_switch_that_holds_them(tmp_path):
    """Three nodes, which no leaf has: the first job has those below left, n1 to n4.

    Of the others there is no switch with three nodes: the second has four leaves' worth of rest, in
    the fewest leaves with the most room, n5 to n7.
    """
    log = jobs("-N3", "--switches=1@30:00 -N3", "--switches=2 -N3")
    read = site(tmp_path, slurm_conf=CONF_OF_8, nodes_conf=NODES, topology_conf=DEEP, sacct_txt=log)
    assert column(read.workload, "topology_preferred") == ["", "leaf", ""]
    assert "--switches=1: a job does not wait" in notes(read)
    assert "--switches above 1" in notes(read)
    whole = sim.Cluster.mixed(read.cluster["shape"]).with_topology(read.cluster["topology"])
    assert asked_levels(read.workload.columns, whole)[1].tolist() == [1, 1, 1]
    result = sim.simulate(read.workload.take([0, 1]), whole, policies.build("fifo"), record="tasks")
    assert result.job_start.tolist() == [0, 0]
    assert result.task_machine.tolist() == [0, 1, 2, 4, 5, 6]


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"slurm_conf": TREE}, "missing: topology.conf: nodes are chosen without regard"),
        ({"topology_conf": SWITCHES}, "TopologyPlugin is not set"),
        ({"slurm_conf": TREE, "topology_conf": SWITCHES, "topology_yaml": "- a"}, "topology.yaml"),
        ({"slurm_conf": CONF + "TopologyPlugin=topology/block\n"}, "topology/block"),
    ],
)  # fmt: skip
def test_topologies_that_are_not_simulated_are_noted(tmp_path, changed, note):
    read = site(tmp_path, **changed)
    assert "topology" not in read.cluster
    assert note in notes(read)


def test_trees_with_faults_are_noted(tmp_path):
    faulty = "Nodes=n1\nSwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-4] Switches=c\n" + (
        "SwitchName=c Nodes=n5 Switches=b\nSwitchName=d Nodes=n6\n"
    )
    read = site(tmp_path, slurm_conf=CONF_OF_8, nodes_conf=NODES, topology_conf=faulty)
    for part in (
        "no SwitchName",
        "n2 is below a and b",
        "nodes below no switch: n[7-8]",
        "several",
    ):
        assert part in notes(read), part
    leaves = read.cluster["topology"]["levels"]["leaf"]["nodes"]
    assert leaves == {
        "a": "n[1-2]", "b": "n[3-4]", "c": "n5", "d": "n6", "n7": "n7", "n8": "n8",
    }  # fmt: skip
    sim.Cluster.mixed(read.cluster["shape"]).with_topology(read.cluster["topology"])
