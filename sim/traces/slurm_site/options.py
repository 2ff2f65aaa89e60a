"""Options of ``slurm.conf`` that are not read: those without an effect on starts, and others."""

from __future__ import annotations

import re

from sim.traces.slurm_site.folder import Folder
from sim.traces.slurm_site.switches import TREE

READ = (
    "schedulertype", "schedulerparameters", "selecttype", "selecttypeparameters", "prioritytype",
    "priorityweightage", "priorityweightfairshare", "priorityweightjobsize",
    "priorityweightpartition", "priorityweightqos", "prioritymaxage", "prioritydecayhalflife",
    "prioritycalcperiod", "priorityfavorsmall", "priorityflags", "preempttype", "preemptmode",
    "accountingstorageenforce", "dependencyparameters", "clustername", "licenses",
)  # fmt: skip
"""Options that are read; what of their values is not understood is noted elsewhere."""
_NO_EFFECT = re.compile(
    r"(slurmctld|slurmd|slurmstepd|slurm(user|sched))\w*|auth\w*|cred\w*|crypto\w*|\w*(log|pid)file"
    r"|\w*(debug|debugflags|syslogdebug)|accountingstor\w*|jobacct\w*|jobcomp\w*|acctgather\w*"
    r"|communicationparameters|statesavelocation|logtimeformat|proctracktype|taskplugin\w*"
    r"|mail\w*|mpi\w*|switch\w*|\w*port|controladdr|controlmachine|backup\w*|plugindir|plugstackconfig"
    r"|prolog\w*|epilog\w*|taskprolog|taskepilog|srun\w*|cli\w*|messagetimeout|tcptimeout|\w*timeout"
    r"|inactivelimit|waittime|minjobage|maxarraysize|maxjobcount|maxjobid|firstjobid|gretypes|grestypes"
    r"|defmempercpu|defmempernode|defcpupergpu|defmempergpu|returntoservice|healthcheck\w*|track\w*|launch\w*|unkillable\w*|tmpfs"
    r"|nodefeaturesplugins|propagate\w*|privatedata|x11parameters|jobcontainer\w*|jobcredential\w*"
    r"|rebootprogram|chosloc|corespec\w*|cpufreq\w*|prep\w*|sbcast\w*|schedlog\w*|scron\w*|usepam|vsize\w*"
    r"|allowspecresourcesusage|jobfileappend|namespace\w*|eio\w*|keepalivetime|federationparameters"
    r"|disablerootjobs|unitselect|dynamicfuture|certmgr\w*|tls\w*|hash\w*|extsensors\w*|energy\w*"
)
_EFFECTS = {
    "priorityusageresetperiod": "usage is never reset",
    "priorityweighttres": "priorities have no part for resources",
    "priorityweightassoc": "priorities have no part for associations",
    "priorityparameters": "priorities without them",
    "prioritysitefactorplugin": "priorities have no part for the site's own factor",
    "preemptexempttime": "jobs may be preempted from their start on",
    "preemptparameters": "preemption goes without them",
    "overtimelimit": "jobs are ended at their limits at once",
    "enforcepartlimits": "jobs that no partition admits are rejected",
    "topologyplugin": "nodes are chosen without regard to its domains",
    "topologyparam": "nodes are chosen without regard to switches",
    "jobsubmitplugins": "what they change is in the log already",
    "suspendtime": "idle nodes stay up", "suspendprogram": "idle nodes stay up",
    "suspendrate": "idle nodes stay up", "suspendexcnodes": "idle nodes stay up",
    "suspendexcparts": "idle nodes stay up",
    "resumeprogram": "idle nodes stay up", "resumerate": "idle nodes stay up",
    "completewait": "jobs start while others complete", "killwait": "jobs end at once",
    "resvoverrun": "jobs in a reservation end with it", "resvepilog": "none", "resvprolog": "none",
    "jobrequeue": "jobs lost with a node start anew", "requeueexit": "as the log has it",
    "maxstepcount": "as the log has it", "maxtaskspernode": "as the log has it",
    "maxmempercpu": "as the log has it", "maxmempernode": "as the log has it",
    "burstbuffertype": "burst buffers are not simulated",
    "schedulertimeslice": "jobs do not take turns on CPUs",
    "fairsharedampeningfactor": "fair share without it", "mcsplugin": "users share nodes",
    "slurmctldparameters": "not known",
}  # fmt: skip
_HARMLESS = {
    "priorityusageresetperiod": ("NONE",), "preemptexempttime": ("00:00:00", "-1"),
    "topologyplugin": ("topology/none", "topology/default", "topology/flat", TREE),
    "completewait": ("0",), "overtimelimit": ("0",), "priorityweightassoc": ("0",),
}  # fmt: skip


def note_options(folder: Folder) -> None:
    """Note each global option that is not read and may change starts, or is not known."""
    conf = folder.conf
    for key, value in conf.options.items():
        if key in READ or value in _HARMLESS.get(key, ()):
            continue
        if key not in _EFFECTS and _NO_EFFECT.fullmatch(key):
            continue
        folder.notes.add("slurm.conf", f"{conf.names[key]}={value}", _EFFECTS.get(key, "not known"))
    for name, node in conf.nodes.items():
        for key in node:
            if key not in _NODE:
                folder.notes.add(
                    "slurm.conf",
                    f"NodeName={name} {key}={node[key]}",
                    _NODE_EFFECTS.get(key, "not known"),
                )


_NODE = (
    "nodehostname", "nodeaddr", "bcastaddr", "port", "cpus", "procs", "sockets",
    "socketsperboard", "boards",
    "corespersocket", "threadspercore", "realmemory", "memspeclimit", "corespeccount", "gres",
    "feature", "features", "weight", "state", "reason",
)  # fmt: skip
_NODE_EFFECTS = {
    "tmpdisk": "jobs that ask for --tmp run on any node",
    "cpuspeclist": "its CPUs count for jobs, unless nodes.txt has CPUEfctv",
    "topology": "nodes are chosen without regard to switches",
}
