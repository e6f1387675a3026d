"""Which container a process is in, seen from outside it.

Its control group may say so. Where that says nothing, one that has used some CPU time is looked at: whether it has
users of its own, and whether one of its forebears is a container's monitor. Only of those that are in one more is
read, and once: environment, mounts, and what root's engine wrote down. Nothing that a user named is opened.
"""

from jobsight.collector import ParseError
from jobsight.formats import container, procstat
from jobsight.formats.container import Container
from jobsight.host import Host

# Of what is read whole or not at all.
ENVIRON = 262144
WRITTEN = 4194304
COMMAND_LINE = 16384
# Forebears that are asked; a script in a shell in a step has some ten.
ABOVE = 24
# What the user map of the machine itself says: every number is itself.
WHOLE_MACHINE = [b"0", b"0", b"4294967295"]
# Programs that start a container and stay outside, by command, which has 15 bytes at most.
MONITORS = {
    "conmon": "podman", "bwrap": "bubblewrap", "starter": "apptainer", "starter-suid": "apptainer",
    "containerd-shim": "containerd", "systemd-nspawn": "systemd-nspawn", "lxc-start": "lxc",
}  # fmt: skip
# What a monitor runs outside.
TOOLS = frozenset({"podman", "runc", "crun", "conmon", "newuidmap", "newgidmap"})
# Where engines keep what they know of one container.
DOCKER = "var/lib/docker/containers/{}/config.v2.json"
KUBERNETES = (
    "run/containerd/io.containerd.runtime.v2.task/k8s.io/{}/config.json",
    "run/containers/storage/overlay-containers/{}/userdata/config.json",
)


class Users:
    """The user map we live in ourselves: in a container of our own nobody else's looks whole."""

    def __init__(self) -> None:
        self._map: list[bytes] | None = None

    def of(self, host: Host) -> list[bytes]:
        if self._map is None:
            self._map = Glance(host).piece("proc/self/uid_map", 256).split() or WHOLE_MACHINE
        return self._map


class Glance:
    """A look at one process and at what belongs to it, which may be gone or not for us."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.refused = False

    def piece(self, path: str, size: int) -> bytes:
        try:
            return self.host.piece(path, size)
        except PermissionError:
            self.refused = True
        except OSError:
            pass
        return b""

    def words(self, name: str) -> list[bytes]:
        return self.piece(f"proc/{name}/cmdline", COMMAND_LINE).split(b"\0") if name else []

    def mounts(self, name: str) -> str:
        # The kernel gives it page by page.
        try:
            return self.host.read(f"proc/{name}/mountinfo")
        except PermissionError:
            self.refused = True
        except OSError:
            pass
        return ""

    def first(self, *paths: str) -> str:
        """The first file that is there."""
        texts = (self.piece(path, WRITTEN) for path in paths)
        return next(filter(None, texts), b"").decode("utf-8", "backslashreplace")


def grouped(host: Host, name: str, group: Container) -> Container | None:
    """Of a process whose control group names its container; what is found holds for all in that group."""
    glance = Glance(host)
    runtime, monitor = forebear(glance, name)
    if not group.runtime:
        if not runtime:
            return None
        shim = runtime == "containerd"
        group = group._replace(runtime=container.of_shim(glance.words(monitor)) if shim else runtime)
    return _shown(glance, name, written(glance, group, monitor))


def looked_for(host: Host, name: str, command: str) -> Container | None:
    """Of a process whose control group names none."""
    glance = Glance(host)
    users = glance.piece(f"proc/{name}/uid_map", 256).split()
    own = bool(users) and users != host.keep(Users).of(host)
    runtime, monitor = forebear(glance, name)
    if not (own or runtime) or command in TOOLS or (command in MONITORS and not own):
        return None
    said = container.of_monitor(glance.words(monitor)) if runtime == "podman" else None
    if said:
        return _shown(glance, name, written(glance, Container("podman", said.id, said.name), monitor))
    told = container.of_environ(glance.piece(f"proc/{name}/environ", ENVIRON))
    # What it inherited from a container around its own is not of its own.
    alike = {"", told.runtime, "apptainer" if told.runtime == "singularity" else ""} if told else ()
    return _shown(glance, name, told if told and runtime in alike else Container(runtime or "namespace"))


def _shown(glance: Glance, name: str, found: Container) -> Container:
    """With its id as people write it, and its directory where nobody names its image."""
    image = found.image or directory(glance, name)
    return found._replace(id=container.short(found.id), image=image, hidden=glance.refused and not image)


def forebear(glance: Glance, name: str) -> tuple[str, str]:
    """The nearest monitor above a process: whose it is, and its pid."""
    pid = name
    for _ in range(ABOVE):
        try:
            stat = procstat.parse(glance.piece(f"proc/{pid}/stat", 1024))
        except ParseError:
            break
        if pid != name and stat.command in MONITORS and _watches(glance, pid, stat.command):
            return MONITORS[stat.command], pid
        if stat.parent <= 1:
            break
        pid = str(stat.parent)
    return "", ""


def _watches(glance: Glance, pid: str, command: str) -> bool:
    """Many programs may be called a starter: Apptainer's says what it is instead of how it was called."""
    told = (b"Apptainer runtime", b"Singularity runtime")
    return not command.startswith("starter") or b" ".join(glance.words(pid)).startswith(told)


def written(glance: Glance, found: Container, monitor: str) -> Container:
    """With what the engine wrote down of it. A path is taken from root's own monitor only: to open what somebody else
    names may do anything.
    """
    told: Container | None = None
    if found.runtime == "docker":
        told = container.of_docker(glance.first(DOCKER.format(found.id)))
    elif found.runtime in ("kubernetes", "crio", "containerd"):
        told = container.of_bundle(glance.first(*(path.format(found.id) for path in KUBERNETES)))
    elif monitor and (said := container.of_monitor(glance.words(monitor))) and said.id == found.id:
        found = found._replace(name=said.name)
        folder = said.bundle.rstrip("/").rpartition("/")[0].rpartition("/")[0].lstrip("/")
        if _roots(glance, monitor):
            told = container.of_storage(glance.first(f"{folder}/containers.json"), found.id)
    return found._replace(name=told.name or found.name, image=told.image) if told else found


def directory(glance: Glance, name: str) -> str:
    """The directory that is a process's root, as this machine names it."""
    root = container.root_of(glance.mounts(name))
    return container.place(root, glance.mounts("self")) if root else ""


def outside(host: Host, name: str, uid: int) -> str:
    """The user of a process. A number that nobody has here may be one that a container gave out: then it is whose
    container it is, the only one whom such a map has as a line of one.
    """
    user = host.user(uid)
    if not user.isdecimal():
        return user
    for line in Glance(host).piece(f"proc/{name}/uid_map", 4096).splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == b"1" and words[1].isdigit():
            owner = host.user(int(words[1]))
            if not owner.isdecimal():
                return owner
    return user


def _roots(glance: Glance, pid: str) -> bool:
    """Whether root started it: what a user starts and runs as root has that user's number as one of its four."""
    for line in glance.piece(f"proc/{pid}/status", 4096).splitlines():
        if line.startswith(b"Uid:"):
            return set(line.split()[1:]) == {b"0"}
    return False
