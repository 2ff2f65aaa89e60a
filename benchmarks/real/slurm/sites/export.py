"""Export of a site that has run, by the commands of ``docs/your_site.md``."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from pathlib import Path

from benchmarks.real.slurm.cluster import Cluster

FILES = (
    "slurm.conf", "gres.conf", "nodes.txt", "partitions.txt", "reservation.txt", "qos.txt",
    "assoc.txt", "events.txt", "sacct.txt", "slurmctld.log",
    "sdiag.txt",
)  # fmt: skip
ABOUT = "run.json"
_ASSOC = (
    "Account,User,ParentName,Partition,Share,GrpJobs,GrpSubmit,GrpTRES,GrpTRESMins,GrpTRESRunMins,"
    "GrpWall,MaxJobs,MaxSubmit,MaxTRES,MaxWall"
)
_SACCT = (
    "JobID,Cluster,User,Account,Partition,QOS,Submit,Eligible,Start,End,Elapsed,Timelimit,State,"
    "AllocCPUS,ReqCPUS,NNodes,ReqMem,AllocTRES,ReqTRES,NodeList,Priority,Reservation,Constraints,"
    "Reason,JobName,SubmitLine"
)
_SETTLED_S = 3.0
"""Real time after which the database has the last job's end."""


def write(started: Cluster, target: Path, begin: str, end: str, about: dict[str, object]) -> None:
    """Write the files of a site into `target`, compressed, and ``run.json``.

    Times of the export are the daemons', which are in the commands' future. ``reservation.txt`` is
    there already if there was a reservation: Slurm shows them only while they exist.
    """
    time.sleep(_SETTLED_S)
    texts = {name: (started.folder / name).read_text() for name in ("slurm.conf", "gres.conf")}
    log = (started.folder / "slurmctld.log").read_text()
    dates = (f"start={begin}", f"end={end}")
    printed = {
        "nodes.txt": "scontrol show node -o",
        "partitions.txt": "scontrol show partition -o",
        "qos.txt": "sacctmgr --parsable2 show qos",
        "assoc.txt": f"sacctmgr --parsable2 show assoc format={_ASSOC}",
        "events.txt": f"sacctmgr --parsable2 show event {' '.join(dates)} "
        "format=NodeName,TimeStart,TimeEnd,State",
        "sdiag.txt": "sdiag",
        "sacct.txt": f"sacct --allusers --duplicates --starttime {begin} --endtime {end} "
        f"--parsable2 --format {_SACCT}",
    }
    texts |= {name: started.command(*words.split()) for name, words in printed.items()}
    texts["slurmctld.log"] = log
    texts["reservation.txt"] = "No reservations in the system\n"
    if (shown := target / "reservation.txt").exists():
        texts["reservation.txt"] = shown.read_text()
        shown.unlink()
    for name in FILES:
        _write(target / f"{name}.gz", anonymous(texts[name], started.folder))
    (target / ABOUT).write_text(json.dumps(about, indent=1) + "\n")


def anonymous(text: str, folder: Path) -> str:
    """Return a text without the names of this machine and of the run's folder."""
    host = re.escape(socket.gethostname().split(".")[0])
    return re.sub(rf"\b{host}\b", "host", text.replace(str(folder), "/var/site"))


def _write(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
