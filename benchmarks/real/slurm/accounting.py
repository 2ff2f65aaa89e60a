"""Accounting database of a cluster: MariaDB and slurmdbd on loopback, accounts, users and QOS."""

from __future__ import annotations

import getpass
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.real.slurm import cluster
from benchmarks.real.slurm.cluster import Cluster

PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacctmgr", "sprio", "sshare")
START_WITHIN_S = 60.0


@dataclass(frozen=True)
class Site:
    """Accounts and QOS of a site, and lines of ``slurm.conf``, which replace others.

    Attributes
    ----------
    shares
        Shares of an account, or of a user in it (``account/user``).
    parents
        The account above an account; the root for others.
    qos
        Priority of each QOS.
    lines
        Lines of ``slurm.conf``.
    qos_options, account_options
        Words for ``sacctmgr modify``, by QOS and account: limits, who preempts whom.
    for_partitions
        QOS of partitions, which users may not name.
    """

    shares: Mapping[str, int]
    parents: Mapping[str, str]
    qos: Mapping[str, int]
    lines: Mapping[str, str]
    qos_options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    account_options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    for_partitions: Sequence[str] = ()

    @property
    def users(self) -> list[tuple[str, str]]:
        """Account and name of each user."""
        pairs = [key.partition("/") for key in self.shares if "/" in key]
        return [(account, user) for account, _, user in pairs]


def missing() -> list[str]:
    """Return the programs that a database needs and this machine lacks."""
    path = cluster.search_path()
    return [program for program in PROGRAMS if shutil.which(program, path=path) is None]


def prepare(prepared: Cluster, site: Site) -> None:
    """Start the database of a cluster whose daemons do not run yet, and fill it.

    Raises
    ------
    RuntimeError
        If a daemon did not answer in time.
    """
    folder, port = prepared.folder, cluster.free_ports(2)
    conf = folder / "slurm.conf"
    lines = dict(site.lines) | {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": str(port),
        "AccountingStoragePass": f"{folder}/munge.socket",
        "AccountingStorageEnforce": "associations,limits,qos",
    }
    conf.write_text(changed(conf.read_text(), lines))
    _start_mariadb(prepared, port + 1)
    _start_slurmdbd(prepared, port)
    _fill(prepared, site)


def changed(text: str, lines: Mapping[str, str]) -> str:
    """Return ``slurm.conf`` with other values of some keys."""
    for key, value in lines.items():
        text = re.sub(rf"(?m)^{key}=.*\n", "", text)
        text = f"{key}={value}\n{text}"
    return text


def _start_mariadb(prepared: Cluster, port: int) -> None:
    folder, user = prepared.folder, getpass.getuser()
    prepared.command(
        "mariadb-install-db", "--no-defaults", f"--datadir={folder}/database", f"--user={user}",
        "--auth-root-authentication-method=normal", "--skip-test-db",
    )  # fmt: skip
    server = [
        "mariadbd", "--no-defaults", f"--datadir={folder}/database", f"--user={user}",
        f"--socket={folder}/database.socket", "--bind-address=127.0.0.1", f"--port={port}",
        f"--pid-file={folder}/database.pid",
    ]  # fmt: skip
    cluster.start(server, folder)
    sql = "create database slurm_acct_db; create user slurm@'127.0.0.1'; "
    sql += "create user slurm@localhost; grant all on slurm_acct_db.* to slurm@'127.0.0.1'; "
    sql += "grant all on slurm_acct_db.* to slurm@localhost;"
    client = ("mariadb", "--no-defaults", f"--socket={folder}/database.socket", "-uroot", "-e")
    _until_done(prepared, *client, "select 1")
    prepared.command(*client, sql)


def _start_slurmdbd(prepared: Cluster, port: int) -> None:
    folder = prepared.folder
    lines = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge.socket",
        "DbdHost": socket.gethostname().split(".")[0],
        "DbdAddr": "127.0.0.1",
        "DbdPort": str(port),
        "CommunicationParameters": "NoInAddrAny",
        "SlurmUser": getpass.getuser(),
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "127.0.0.1",
        "StoragePort": str(port + 1),
        "StorageUser": "slurm",
        "LogFile": f"{folder}/slurmdbd.log",
        "PidFile": f"{folder}/slurmdbd.pid",
    }
    conf = folder / "slurmdbd.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    conf.chmod(0o600)
    cluster.start(["env", f"SLURM_CONF={folder}/slurm.conf", "slurmdbd", "-D"], folder)
    _until_done(prepared, "sacctmgr", "show", "qos")


def _fill(prepared: Cluster, site: Site) -> None:
    def add(*words: str) -> None:
        prepared.command("sacctmgr", "-i", "add", *words)

    add("cluster", "replay")
    for name, priority in site.qos.items():
        if name != "normal":  # which is there
            add("qos", name, f"priority={priority}")
    accounts = [key for key in site.shares if "/" not in key]
    for name in sorted(accounts, key=lambda name: name in site.parents):
        parent = site.parents.get(name, "root")
        add("account", name, f"parent={parent}", f"fairshare={site.shares[name]}", "cluster=replay")
    for account, user in site.users:
        share = site.shares[f"{account}/{user}"]
        add("user", user, f"account={account}", f"fairshare={share}", "cluster=replay")
    own = ",".join(name for name in site.qos if name not in site.for_partitions)
    for user in sorted({user for _, user in site.users}):
        prepared.command("sacctmgr", "-i", "modify", "user", user, "set", f"qos={own}")


def limit(started: Cluster, site: Site) -> None:
    """Set the options of QOS and accounts, once the controller has named its resources."""
    for kind, options in (("qos", site.qos_options), ("account", site.account_options)):
        for name, words in options.items():
            started.command("sacctmgr", "-i", "modify", kind, name, "set", *words)


def _until_done(prepared: Cluster, *words: str) -> None:
    """Repeat a command until it succeeds."""
    until = time.monotonic() + START_WITHIN_S
    while True:
        try:
            prepared.command(*words)
            return
        except subprocess.CalledProcessError as error:
            if time.monotonic() > until:
                log = (prepared.folder / "daemons.log").read_text()
                raise RuntimeError(f"{words[0]}: {error.stderr}\n{log[-800:]}") from error
        time.sleep(0.5)
