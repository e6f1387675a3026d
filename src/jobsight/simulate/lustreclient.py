"""How clients make the identifiers of their requests, and how they spoil them.

Before 2.16 a client writes the identifier of a file's reads and writes into a place that all threads share, part
after part, and a request takes what stands there at that moment. A job that cannot be looked up at once is left out.
"""

from random import Random
from typing import NamedTuple

from jobsight.simulate.lustretarget import LONGEST

FORMAT = "%j:%u:%H"
LOGIN = "%e.%u"


class Client(NamedTuple):
    """A process on a node that uses the file system."""

    host: str
    uid: int
    job: str = ""
    executable: str = "python3"
    domain: str = "cluster.local"
    gid: int = 100
    pid: int = 4711

    def parts(self) -> dict[str, str]:
        """What each code of a format stands for."""
        return {
            "j": self.job,
            "u": str(self.uid),
            "g": str(self.gid),
            "h": f"{self.host}.{self.domain}",
            "H": self.host,
            "e": self.executable[:15],
            "p": str(self.pid),
        }


def states(form: str, client: Client) -> list[bytes]:
    """What stands in the place after each step of writing it, the whole identifier last. A node's name is copied with
    its domain and then cut.
    """
    made, text, parts = [], "", client.parts()
    rest = iter("".join(form.split()))
    for character in rest:
        if character != "%":
            text += character
        else:
            code = next(rest, "")
            if code == "H":
                made.append(text + parts["h"])
            text += parts.get(code, "")
        made.append(text)
    return [state.encode()[:LONGEST] for state in made]


def identifier(form: str, client: Client) -> bytes:
    """The identifier as it should be."""
    return states(form, client)[-1]


def torn(form: str, client: Client, chance: Random) -> bytes:
    """One taken while it is written: a beginning, one with a domain, or one into which another thread wrote that
    did not know the job.
    """
    unknown = client._replace(job="")
    shapes = [*states(form, client)[:-1], *states(form, unknown)[:-1]]
    whole = identifier(form, client)
    shapes.append(b":" + whole[1:])
    uid = str(client.uid).encode()
    shapes.append(client.job.encode() + uid[-1:])
    found = [shape for shape in dict.fromkeys(shapes) if shape and shape != whole]
    return chance.choice(found)[:LONGEST]


class Faults(NamedTuple):
    """How often identifiers are spoilt: as parts of all."""

    missing: float = 0.13
    """Without a job, for half a minute each."""
    torn: float = 0.01
    """On object targets."""


NO_FAULTS = Faults(0.0, 0.0)


def sent(form: str, client: Client, kind: str, faults: Faults, chance: Random) -> bytes:
    """The identifier that a request carries."""
    if kind == "ost" and chance.random() < faults.torn:
        return torn(form, client, chance)
    if client.job and chance.random() < faults.missing:
        return identifier(form, client._replace(job=""))
    return identifier(form, client)
