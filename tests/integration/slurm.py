"""A real Slurm on this machine: munge, MariaDB, slurmdbd, slurmctld and a slurmd a node, in a temporary directory.

All of it listens on free ports, is started with an environment of its own and is stopped by process id. The node's
name and the first job's number are this cluster's alone, so that two clusters side by side (two test workers) share
neither control groups nor jobs.
"""

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import free_port, wait_until

PROGRAMS = (
    "munged",
    "mariadbd",
    "mariadb-install-db",
    "mariadb",
    "slurmdbd",
    "slurmctld",
    "slurmd",
    "sbatch",
    "sacct",
)
SCRIPTS = Path(__file__).parent.parent.parent / "deploy" / "slurm"
CGROUP = Path("/sys/fs/cgroup")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ACCOUNTS = {"alice": "physics", "bob": "biology"}
# How an account says that it is ours to remove.
MARK = "test user of jobsight"
MADE = count()

DBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={base}/munge/sock
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser=slurm
LogFile={base}/log/slurmdbd.log
PidFile={base}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={mysql}
StorageUser=slurm
StoragePass=pw
StorageLoc=slurm_acct_db
"""

# More CPUs than this machine has (config_overrides), so that jobs run side by side; cores are then not constrained.
SLURM_CONF = """\
ClusterName=testcluster
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
FirstJobId={first}
AuthType=auth/munge
AuthInfo=socket={base}/munge/sock
SlurmUser=slurm
SlurmdUser=root
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/run/slurmctld.pid
SlurmdPidFile={base}/run/slurmd.%n.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd.%n.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
JobAcctGatherFrequency=task=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
AccountingStoragePass={base}/munge/sock
AccountingStorageEnforce=associations,limits
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,bf_interval=5,batch_sched_delay=1
ReturnToService=2
MailProg=/bin/true
MpiDefault=none
KillWait=5
Prolog={base}/etc/prolog
Epilog={base}/etc/epilog
PrologFlags=Alloc,Contain
SlurmdTimeout=60
SlurmdParameters=config_overrides
DefMemPerCPU=200
PartitionName=normal Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

NODE_CONF = """\
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 Boards=1 SocketsPerBoard=1 \
CoresPerSocket=8 ThreadsPerCore=1 RealMemory=8000 State=UNKNOWN{more}
"""

# What a user has is that user's own.
PRIVATE_CONF = """\
PrivateData=jobs
"""

# Pretend GPUs: devices that every machine has.
GPU_CONF = """\
GresTypes=gpu
AccountingStorageTRES=gres/gpu,gres/gpu:a100
"""
GRES_CONF = """\
Name=gpu Type=a100 File=/dev/null
Name=gpu Type=a100 File=/dev/zero
"""

CGROUP_CONF = """\
CgroupPlugin=cgroup/{version}
ConstrainCores=no
ConstrainRAMSpace=yes
ConstrainSwapSpace=no
ConstrainDevices=no
"""

# slurmd gives a prolog no arguments; a site that wants another directory calls ours from a script like this.
HOOK = """\
#!/bin/sh
exec {script} {base}/jobs
"""


class Slurm:
    """One cluster. Of several nodes each has two pretend GPUs, and users do not see each other's jobs."""

    def __init__(self, base: Path, nodes: int = 1) -> None:
        self.base = base
        self.conf = base / "etc" / "slurm.conf"
        # Of several clusters that one process starts, one after the other, each has names and numbers of its own.
        self._number = next(MADE)
        mine = f"n{os.getpid()}" + (f"v{self._number}" if self._number else "")
        self.nodes = [mine] if nodes == 1 else [f"{mine}x{number}" for number in range(1, nodes + 1)]
        self.node = self.nodes[0]
        self.jobs = base / "jobs"
        """Where the prolog writes what it knows of each job."""
        self._ports = {name: free_port() for name in ("mysql", "dbd", "ctld", "slurmd", *self.nodes)}
        self._daemons: list[subprocess.Popen[bytes]] = []

    def run(self, *command: str, user: str = "root", given: str = "") -> str:
        """A command of Slurm's, as root or as a user; what it printed. An exit code is an error with its words."""
        account = pwd.getpwnam(user)
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=self._environment(user),
            cwd=self.base / "work",
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr or done.stdout}"
        return done.stdout

    def submit(self, user: str, script: str, *options: str) -> str:
        """The number of a job that runs the lines of `script`. Its output is `slurm-NUMBER.out` in `base`/work."""
        told = self.run("sbatch", "--parsable", *options, user=user, given=f"#!/bin/bash\n{script}\n")
        return told.strip().partition(";")[0]

    def state(self, job: str) -> str:
        """`RUNNING`, `COMPLETED` …, as the controller says."""
        words = self.run("scontrol", "-o", "show", "job", job).split()
        return next(word.partition("=")[2] for word in words if word.startswith("JobState="))

    def wait(self, job: str, state: str, seconds: float = 60) -> None:
        wait_until(lambda: self.state(job) == state, seconds, f"job {job} is {state}")

    def output(self, job: str) -> str:
        """What the batch script has printed so far."""
        path = self.base / "work" / f"slurm-{job}.out"
        return path.read_text() if path.exists() else ""

    def logs(self) -> str:
        """The end of what each daemon has said, for when one does not come up."""
        found = sorted((self.base / "log").iterdir())
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-2000:]}" for path in found)

    def start(self) -> None:
        folders = ("munge", "mysql", "state", "spool", "log", "run", "etc", "work", "jobs")
        for name in folders:
            (self.base / name).mkdir()
        # Other users must get through, and none may be shut out by our umask.
        for path in (self.base, *(self.base / name for name in folders)):
            path.chmod(0o755)
        for name in ("run", "work"):
            (self.base / name).chmod(0o1777)
        for name, owner in (("munge", "munge"), ("mysql", "mysql"), ("state", "slurm"), ("log", "slurm")):
            shutil.chown(self.base / name, owner, owner)
        self._write()
        self._start_munge()
        self._start_database()
        self._daemon("slurmdbd", "-D", user="slurm")
        self._until("sacctmgr", "-n", "list", "cluster")
        self.run("sacctmgr", "-i", "-Q", "add", "cluster", "testcluster")
        for user, account in ACCOUNTS.items():
            self.run("sacctmgr", "-i", "-Q", "add", "account", account, "Cluster=testcluster")
            self.run("sacctmgr", "-i", "-Q", "add", "user", user, f"Account={account}", "Cluster=testcluster")
        self._daemon("slurmctld", "-D", user="slurm")
        self._until("scontrol", "ping")
        for node in self.nodes:
            (self.base / "spool" / node).mkdir()
            self._daemon("slurmd", "-D", "-N", node)
        wait_until(lambda: self.run("sinfo", "-h", "-o", "%T").strip() == "idle", 60, "all nodes are idle")

    def stop(self) -> None:
        """End jobs first: a step whose controller is gone lives on for minutes."""
        if len(self._daemons) == 4 + len(self.nodes) and all(daemon.poll() is None for daemon in self._daemons):
            self.run("scancel", "--me", "--quiet")
            for user in ACCOUNTS:
                self.run("scancel", "--quiet", "--user", user)
            with contextlib.suppress(AssertionError):
                wait_until(lambda: not self.run("squeue", "-h"), 30, "no job is left")
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._remove_groups()

    def _write(self) -> None:
        """Keys, settings and the two hooks."""
        host = os.uname().nodename.partition(".")[0]
        facts = {"base": self.base, "host": host, **self._ports}
        large = len(self.nodes) > 1
        more = " Gres=gpu:a100:2" if large else ""
        hidden = PRIVATE_CONF if large else ""
        nodes = "".join(NODE_CONF.format(node=n, host=host, port=self._ports[n], more=more) for n in self.nodes)
        # The largest that Slurm takes is some 67 million.
        first = 1000 * (1 + os.getpid() % 60000) + 200 * (self._number % 5)
        version = "v2" if (CGROUP / "cgroup.controllers").exists() else "v1"
        places = self.conf.parent
        added = GPU_CONF if large else ""
        self.conf.write_text(hidden + added + nodes + SLURM_CONF.format(first=first, **facts))
        if large:
            (places / "gres.conf").write_text(GRES_CONF)
        (places / "cgroup.conf").write_text(CGROUP_CONF.format(version=version))
        private = {places / "slurmdbd.conf": "slurm", self.base / "munge" / "key": "munge"}
        for path, owner in private.items():
            path.touch(0o600)
            shutil.chown(path, owner, owner)
        (places / "slurmdbd.conf").write_text(hidden + DBD_CONF.format(**facts))
        (self.base / "munge" / "key").write_bytes(os.urandom(128))
        for name in ("prolog", "epilog"):
            script = shutil.copy(SCRIPTS / f"{name}.sh", self.base / "run")
            (places / name).write_text(HOOK.format(base=self.base, script=script))
            (places / name).chmod(0o755)

    def _start_munge(self) -> None:
        place = self.base / "munge"
        files = [f"--{name}-file={place / name}" for name in ("key", "pid", "log", "seed")]
        self._daemon("munged", "--foreground", "--force", f"--socket={place / 'sock'}", *files, user="munge")
        wait_until((place / "sock").exists, what="munge listens")

    def _start_database(self) -> None:
        place, socket = self.base / "mysql", self.base / "run" / "mysql.sock"
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", f"--datadir={place}", "--user=mysql", "--skip-test-db",
             "--auth-root-authentication-method=socket"],
            check=True, capture_output=True, env=self._environment("root"),
        )  # fmt: skip
        self._daemon(
            "mariadbd", "--no-defaults", f"--datadir={place}", "--user=mysql", f"--socket={socket}",
            f"--pid-file={place / 'pid'}", "--bind-address=127.0.0.1", f"--port={self._ports['mysql']}",
            "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=2",
        )  # fmt: skip
        self._until("mariadb", f"--socket={socket}", "-e", "select 1")
        for place_of_user in ("127.0.0.1", "localhost"):
            account = f"'slurm'@'{place_of_user}'"
            asked = f"create user {account} identified by 'pw'; grant all on slurm_acct_db.* to {account}"
            self.run("mariadb", f"--socket={socket}", "-e", asked)

    def _daemon(self, *command: str, user: str = "root") -> None:
        account = pwd.getpwnam(user)
        with (self.base / "log" / f"{command[0]}.out").open("wb") as log:
            daemon = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.base,
                env=self._environment(user),
                user=account.pw_uid,
                group=account.pw_gid,
                extra_groups=[],
            )
        self._daemons.append(daemon)

    def _until(self, *command: str) -> None:
        """Wait until a command works."""

        def works() -> bool:
            assert self._daemons[-1].poll() is None, f"{self._daemons[-1].args!r} ended"
            with contextlib.suppress(AssertionError):
                self.run(*command)
                return True
            return False

        wait_until(works, 60, " ".join(command))

    def _environment(self, user: str) -> dict[str, str]:
        """Nothing of the shell's: slurmd hands its own environment on to jobs."""
        return {"PATH": PATH, "SLURM_CONF": str(self.conf), "USER": user, "LOGNAME": user, "HOME": "/nonexistent"}

    def _remove_groups(self) -> None:
        """The node's control groups, and whoever is still in them: both are this cluster's alone."""
        patterns = [form.format(node) for node in self.nodes
                    for form in ("*/slurm_{}", "system.slice/{}_slurmstepd.scope")]  # fmt: skip
        tops = [path for pattern in patterns for path in CGROUP.glob(pattern)]
        for top in tops:
            for folder, _, _ in os.walk(top, topdown=False):
                for pid in (Path(folder) / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                end = time.monotonic() + 5
                while Path(folder).exists() and time.monotonic() < end:
                    with contextlib.suppress(OSError):
                        Path(folder).rmdir()
                        break
                    time.sleep(0.05)


@contextlib.contextmanager
def people() -> Iterator[None]:
    """alice and bob. Those who were not there are made, and removed by the last cluster that needs them."""
    with Path(tempfile.gettempdir(), "jobsight-test-users.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for user in ACCOUNTS:
            if not exists(user):
                subprocess.run(
                    ["useradd", "-M", "-s", "/bin/bash", "-c", MARK, user], check=True, capture_output=True
                )
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for user in ACCOUNTS:
                    if exists(user) and pwd.getpwnam(user).pw_gecos == MARK:
                        subprocess.run(["userdel", user], check=True, capture_output=True)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One cluster at a time: two on a small machine make each other late."""
    with Path(tempfile.gettempdir(), "jobsight-test-slurm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def exists(user: str) -> bool:
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwnam(user))
    return False


def missing() -> str:
    """Why there can be no Slurm here; empty if there can."""
    if os.geteuid() != 0:
        return "ONLY ROOT CAN START ONE"
    lacking = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"{', '.join(lacking)} NOT INSTALLED, run scripts/servers" if lacking else ""


@pytest.fixture(scope="module", name="slurm")
def running_slurm() -> Iterator[Slurm]:
    """A running cluster of one node, the same for all tests of a module: import this function there."""
    yield from running(1)


@pytest.fixture(scope="module", name="pair_of_nodes")
def running_pair() -> Iterator[Slurm]:
    """One of two nodes with GPUs."""
    yield from running(2)


def running(nodes: int) -> Iterator[Slurm]:
    if reason := missing():
        if os.environ.get("CI") == "true":
            pytest.fail(f"no Slurm: {reason}")
        pytest.skip(f"NO REAL SLURM HERE, so nothing is tested against one: {reason}")
    # Not below pytest's own directory: that is closed to other users, and its names are too long for a socket.
    base = Path(tempfile.mkdtemp(prefix="jobsight-slurm-"))
    cluster = Slurm(base, nodes)
    try:
        with alone(), people():
            try:
                try:
                    cluster.start()
                except BaseException:
                    print(cluster.logs())
                    raise
                yield cluster
            finally:
                cluster.stop()
    finally:
        shutil.rmtree(base, ignore_errors=True)
