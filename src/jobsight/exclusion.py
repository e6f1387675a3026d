"""Processes that nobody wants to know of."""

from jobsight.formats import cpulist
from jobsight.formats.procstat import ProcStat
from jobsight.host import Host


class Unwanted:
    """Whom to leave out, and whose command lines nobody asks for. Users' numbers before their names: a name may have
    to be looked up far away.
    """

    def __init__(
        self, users: tuple[str, ...], commands: tuple[str, ...], uids: tuple[str, ...], *, arguments: bool
    ) -> None:
        self.arguments = arguments
        self._users = users
        self._commands = commands
        self._uids = [span for text in uids for span in cpulist.spans(text)]

    def has(self, host: Host, uid: int, stat: ProcStat, *, contained: bool) -> bool:
        """Whether to leave it out. Root in a container is not the system: there everybody is root."""
        if not contained:
            for first, last in self._uids:
                if first <= uid <= last:
                    return True
        return stat.command in self._commands or (bool(self._users) and host.user(uid) in self._users)
