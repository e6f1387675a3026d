"""Who a node's messages are from."""

from jobsight.host import Host
from jobsight.schema.message import Origin
from jobsight.settings import Settings


def origin(settings: Settings, host: Host) -> Origin:
    """A machine without a boot id still needs its boots told apart."""
    return Origin(settings.cluster, settings.node or host.node(), host.boot() or "unknown")
