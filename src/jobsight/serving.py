"""Settings of what listens: the server, who may see what there, and the exporter."""

from typing import NamedTuple

from jobsight.schema.units import Seconds


class Kafka(NamedTuple):
    """Topics the server reads: `[prefix.]<cluster>.<collector>`, as the sink `kafka` writes them."""

    brokers: tuple[str, ...]
    group: str = "jobsight"
    clusters: tuple[str, ...] = ()
    """All there are if not set."""
    prefix: str | None = None
    tls: bool | None = None
    ca_file: str | None = None
    username: str | None = None
    password_file: str | None = None
    mechanism: str = "SCRAM-SHA-512"


class Access(NamedTuple):
    """Who may see which jobs. Where this is set, everybody sees their own and no others."""

    admins: tuple[str, ...] = ()
    """Users who see everything, besides root on this machine."""
    admin_groups: tuple[str, ...] = ()
    """Groups of this machine whose members see everything."""
    coordinators: dict[str, tuple[str, ...]] | None = None
    """By account, the users who see all jobs charged to it."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks whose word on who asks is taken."""
    proxy_users: tuple[str, ...] = ()
    """If set, their word is taken only if they show the password of one of these users of the web config file."""
    user_headers: tuple[str, ...] = ("X-Grafana-User",)
    """Where they say it."""


class Stats(NamedTuple):
    """The stats API."""

    shortest: Seconds = Seconds(0)
    """Jobs that ran for less are not listed."""
    uid_in_id: bool = False
    """Whether the unique id of a job is made of its user's number in place of the name."""


class Stray(NamedTuple):
    """What is no stray on a node of a scheduler. Names may be patterns: `svc-*`."""

    grace: Seconds = Seconds(300)
    """Sessions that have not lasted longer."""
    users: tuple[str, ...] = (
        "root", "slurm", "munge", "daemon", "nobody", "messagebus", "systemd-*", "polkitd", "chrony", "ntp", "rpc*",
        "dbus", "postfix", "sshd",
    )  # fmt: skip
    commands: tuple[str, ...] = ("sshd", "systemd", "(sd-pam)", "dbus-daemon")
    """Sessions in which nothing else runs."""
    nodes: tuple[str, ...] = ()
    """Where users may work beside the scheduler: login nodes."""


class Programs(NamedTuple):
    """Which program a command is."""

    map: str = ""
    """The site's own map, a file as `analyse/programs.tsv` is: its rules come first."""
    builtin: bool = True
    """Whether the starter map follows."""


class Lustre(NamedTuple):
    """What is shown of a Lustre file system."""

    system: str = "fold"
    """The system's own users: `fold` them into one for each target, `keep` them like anybody, or `drop` them."""
    system_below: int = 1000
    """Users with smaller numbers are the system's."""


class Serve(NamedTuple):
    """Where the server listens, who may send to it and see what, and where it fetches from."""

    listen: str = "127.0.0.1:9020"
    token_file: str | None = None  # one token for all, besides those of `jobsight token`
    cert_file: str | None = None  # with `key_file`: speak HTTPS
    key_file: str | None = None
    requests: int = 256  # how many may be sending at the same moment
    rate: int | None = None  # messages a second that one token may send on average
    scheduler_nodes: tuple[str, ...] = ()  # nodes that may tell of all the cluster's jobs; any if not set
    kafka: Kafka | None = None
    ingest_only: bool = False  # no pages and no API: one of several servers that write into one database
    web_config_file: str | None = None  # HTTPS and passwords as Prometheus' programs have them
    access: Access | None = None  # everybody who reaches the server sees everything if not set
    stats: Stats = Stats()
    stray: Stray = Stray()
    lustre: Lustre = Lustre()


class Batchjob(NamedTuple):
    """Series by the names of the batch job exporter. Everything its documentation shows is on."""

    enabled: bool = True
    collect: tuple[str, ...] = ("slurm_job", "rapl", "ipmi_dcmi", "emissions")
    job_path: str = "/run/slurmjobprops"
    """Where its prolog leaves a file a job, besides the one that collect.allocation reads."""
    gpu_path: str = "/run/gpujobmap"
    """Where its prolog leaves a file a card."""
    vendor: str | None = None
    """Cards of one maker only: nvidia or amd."""
    unique_ids: bool = True
    swap: bool = True
    pressure: bool = True
    zone_label: bool = False
    """Whether zones of energy are told apart by a label in place of the metric's name."""
    hostname: str | None = None
    """The node's name if not set."""


class Exporter(NamedTuple):
    """Where the exporter listens and what it shows."""

    listen: str = "127.0.0.1:9010"
    web_config_file: str | None = None
    path: str = "/metrics"
    requests: int = 40  # scrapes at once; those beyond are told to come again
    records: bool = True  # series by our own names, derived from the records
    collect: tuple[str, ...] = ()  # which of them; not set: all that are series, which processes are not
    steps: bool = False  # whether the steps and tasks of a job are series too, by either name
    itself: bool = True  # what the exporter takes
    batchjob: Batchjob = Batchjob()


def check(serve: Serve) -> None:
    """ValueError for what types cannot say."""
    access = serve.access or Access()
    for text in access.trusted_proxies:
        from ipaddress import ip_network  # not for the agent, which has none

        try:
            ip_network(text)
        except ValueError as error:
            raise ValueError(f"access.trusted_proxies: {error}") from None
    if any(not account.strip() for account in access.coordinators or {}):
        raise ValueError("access.coordinators: an account has no name: all jobs without an account would be its")
    names = [
        *access.admins,
        *access.admin_groups,
        *(u for users in (access.coordinators or {}).values() for u in users),
    ]
    if any(not name.strip() for name in names):
        raise ValueError("access: a user or group has no name")
    if serve.lustre.system not in ("fold", "keep", "drop"):
        raise ValueError(f"lustre.system: expected fold, keep or drop, got {serve.lustre.system!r}")
    if serve.requests < 1 or (serve.rate is not None and serve.rate < 1):
        raise ValueError("requests and rate must be 1 or more")
    if serve.web_config_file and (serve.cert_file or serve.key_file):
        raise ValueError("HTTPS is set by cert_file or by web_config_file, not by both")
