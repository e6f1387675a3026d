"""What tells of a container from outside: paths of control groups, monitors' command lines, environments, mounts, and
what engines write down of the containers they run.
"""

import json
import re
from itertools import pairwise
from typing import Any, NamedTuple

# Of an id people use the first twelve digits, as in a job's name.
SHORT = 12
# Of a name or an image's name; somebody's environment may hold anything.
LONGEST = 256

# A part of a path that is a container's: `docker-ID.scope`, `libpod-ID`, `…:cri-containerd:ID`, or the ID alone. That
# of a monitor, `libpod-conmon-ID.scope`, is none.
_PART = re.compile(
    r"/(?:[^/]*?\b(?P<engine>docker|libpod|cri-containerd|crio|nerdctl|buildah)[-:])?(?P<id>[0-9a-f]{64})"
    r"(?:\.scope)?(?=/|$)",
    re.MULTILINE,
)
ENGINES = {
    "docker": "docker", "libpod": "podman", "cri-containerd": "containerd", "nerdctl": "containerd", "crio": "crio",
    "buildah": "buildah",
}  # fmt: skip
# Who sets `container=` to its own name in what it runs.
SELF_NAMED = frozenset({"podman", "docker", "lxc", "systemd-nspawn", "buildah", "flatpak"})
# What an environment is asked for.
VARIABLES = frozenset({
    b"APPTAINER_CONTAINER", b"APPTAINER_NAME", b"SINGULARITY_CONTAINER", b"SINGULARITY_NAME", b"CH_RUNNING",
    b"container",
})  # fmt: skip
# Where engines that Kubernetes uses note a container's namespace, pod, name and image.
CONTAINERD_NOTES = (
    "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.container-name",
    "io.kubernetes.cri.image-name",
)  # fmt: skip
CRIO_NOTES = (
    "io.kubernetes.pod.namespace", "io.kubernetes.pod.name", "io.kubernetes.container.name",
    "io.kubernetes.cri-o.ImageName",
)  # fmt: skip
# Root directories that are put together: where they lie says nothing of what is in them.
COMPOSED = frozenset({"overlay", "tmpfs", "fuse.fuse-overlayfs", "aufs", "rootfs", "ramfs"})


class Container(NamedTuple):
    """One container, as far as it is known. What is not known is empty."""

    runtime: str = ""
    id: str = ""
    name: str = ""
    image: str = ""
    """Its name; where it has none, the file or the directory that is the container's root."""
    hidden: bool = False
    """Whether somebody with more rights would see the image."""


class Monitor(NamedTuple):
    """What the command line of `conmon` says, which watches over one container of Podman or CRI-O."""

    id: str
    name: str
    bundle: str
    """The engine's directory of this container."""


class Root(NamedTuple):
    """Where a root directory lies: a directory of a filesystem."""

    device: str
    path: str


def short(number: str) -> str:
    """An id as people write it; empty if it is none."""
    return number[:SHORT] if re.fullmatch(r"[0-9a-f]{12,64}", number) else ""


def of_cgroup(text: str) -> Container | None:
    """The innermost container that a process's control groups name, without a runtime where only its monitor can
    tell. `text` is the process's /proc/PID/cgroup.
    """
    found = None
    for line in text.splitlines():
        path = line.split(":", 2)[-1]
        for part in _PART.finditer(path):
            if found is None or part.end() >= found[0]:
                found = part.end(), part["id"], _runtime(path, part)
    return Container(found[2], found[1]) if found else None


def _runtime(path: str, part: re.Match[str]) -> str:
    before = path[: part.start()]
    if "kubepods" in before or "kubepods" in part[0]:
        return "kubernetes"
    if part["engine"]:
        return ENGINES[part["engine"]]
    # Without systemd the engine's name is that of the directory above; a directory of somebody's own may be anything.
    return {"docker": "docker", "default": "containerd"}.get(before.rpartition("/")[2], "")


def of_monitor(words: list[bytes]) -> Monitor | None:
    """From `conmon --api-version 1 -c ID -u ID -r … -b BUNDLE -p … -n NAME …`."""
    # Names may be any word: only what follows one of these, in pairs, before the command to run at the end.
    said: dict[bytes, bytes] = {}
    for option, value in pairwise(words):
        if option == b"--exit-command":
            break
        if option in (b"-c", b"-n", b"-b"):
            said.setdefault(option, value)
    number = said.get(b"-c", b"").decode("ascii", "replace")
    if not re.fullmatch(r"[0-9a-f]{64}", number):
        return None
    bundle = said.get(b"-b", b"").decode("utf-8", "backslashreplace")
    return Monitor(number, _text(said.get(b"-n", b"")), bundle)


def of_shim(words: list[bytes]) -> str:
    """Whose container it is that a shim watches over: `containerd-shim-runc-v2 -namespace moby -id …`."""
    said = dict(pairwise(words)).get(b"-namespace", b"")
    return {b"moby": "docker", b"k8s.io": "kubernetes"}.get(said, "containerd")


def named(environ: bytes) -> bytes:
    """The environment without all that is not asked for: it may hold secrets."""
    return b"".join(item + b"\0" for item in environ.split(b"\0") if item.partition(b"=")[0] in VARIABLES)


def of_environ(environ: bytes) -> Container | None:
    """What a container's runtime put into the environment of what it runs."""
    values = dict(item.split(b"=", 1) for item in named(environ).split(b"\0") if b"=" in item)
    # Apptainer sets its forerunner's names, too.
    for runtime, prefix in (("apptainer", b"APPTAINER_"), ("singularity", b"SINGULARITY_")):
        image, name = _text(values.get(prefix + b"CONTAINER", b"")), _text(values.get(prefix + b"NAME", b""))
        if image or name:
            return Container(runtime, "", name, image or name)
    if b"CH_RUNNING" in values:
        return Container("charliecloud")
    said = _text(values.get(b"container", b""))
    return Container(said) if said in SELF_NAMED else None


def root_of(mountinfo: str) -> Root | None:
    """Where the root directory of a process lies; None for one that is put together, or is a whole filesystem."""
    found = None
    for line in mountinfo.splitlines():
        words = line.split(" ")
        # `67 44 254:0 /srv/images/box / rw,relatime - ext4 /dev/vda rw`; of several the last one lies on top.
        if len(words) > 8 and words[4] == "/" and "-" in words:
            kind = words[words.index("-") + 1]
            found = Root(words[2], words[3]) if words[3] != "/" and kind not in COMPOSED else None
    return found


def place(root: Root, mountinfo: str) -> str:
    """The same directory as this machine names it, by its own mounts; empty if it has it nowhere."""
    best, path = -1, ""
    for line in mountinfo.splitlines():
        words = line.split(" ")
        if len(words) < 5 or words[2] != root.device:
            continue
        above = words[3].rstrip("/")
        if len(above) > best and f"{root.path}/".startswith(f"{above}/"):
            best, path = len(above), words[4].rstrip("/") + root.path[len(above) :]
    return _unescaped(path)[:LONGEST]


def _unescaped(path: str) -> str:
    r"""The kernel writes a space as `\040`."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def of_storage(text: str, number: str) -> Container | None:
    """From `containers.json`, in which Podman's storage lists its containers."""
    for one in _list(_loaded(text)):
        if isinstance(one, dict) and one.get("id") == number:
            told = _mapping(_loaded(one.get("metadata")))
            return Container("", number, _word(told.get("name")), _word(told.get("image-name")))
    return None


def of_docker(text: str) -> Container:
    """From `config.v2.json`, in which Docker keeps what it knows of one container."""
    told = _mapping(_loaded(text))
    image = _mapping(told.get("Config")).get("Image")
    return Container("", "", _word(told.get("Name")).removeprefix("/"), _word(image))


def of_bundle(text: str) -> Container:
    """From the `config.json` of a container that Kubernetes has run: its engine leaves notes there."""
    notes = _mapping(_mapping(_loaded(text)).get("annotations"))
    *where, image = CRIO_NOTES if CRIO_NOTES[-1] in notes else CONTAINERD_NOTES
    name = "/".join(filter(None, (_word(notes.get(key)) for key in where)))
    return Container("", "", name[:LONGEST], _word(notes.get(image)))


def public(path: str, text: bytes) -> bytes:
    """An engine's file without all that is not asked for: the rest holds environments, which may hold secrets."""
    if path.endswith("/config.v2.json"):
        told = of_docker(text.decode("utf-8", "replace"))
        return json.dumps({"Name": f"/{told.name}", "Config": {"Image": told.image}}).encode()
    if path.endswith("/config.json"):
        notes = _mapping(_mapping(_loaded(text.decode("utf-8", "replace"))).get("annotations"))
        return json.dumps(
            {"annotations": {key: notes[key] for key in CONTAINERD_NOTES + CRIO_NOTES if key in notes}}
        ).encode()
    return text


def _loaded(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _word(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) and value.isprintable() else ""


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")[:LONGEST]
