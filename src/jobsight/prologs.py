"""What the scheduler's prolog left on this node of its jobs: one small file for each, see deploy/slurm."""

from collections.abc import Collection, Iterator

from jobsight.collector import ParseError
from jobsight.formats import joblabels
from jobsight.formats.joblabels import Labels
from jobsight.host import Host

Name = tuple[str, str]
"""Scheduler and job, as control groups have them."""


def prologs(host: Host, path: str) -> Iterator[tuple[str, Labels]]:
    """What the prolog's files say. One that cannot be read or understood does not cost the others."""
    place = path.strip("/")
    for name in sorted(host.names(place)):
        if name.startswith("."):
            continue  # being written
        try:
            content = host.piece(f"{place}/{name}", joblabels.LONGEST_FILE)
            scheduler, labels, refused = joblabels.of_file(content)
        except PermissionError:
            host.miss("job", "forbidden")
        except FileNotFoundError:
            pass  # the epilog was quicker
        except (OSError, ParseError):
            host.miss("job", "failed")
        else:
            for column in refused:
                host.miss("owner" if column == "uid" else "number" if column == "sluid" else column, "failed")
            if labels.owner is None and labels.uid is not None:
                labels = labels._replace(owner=host.user(int(labels.uid)))
            yield scheduler, labels


def job_of(scheduler: str, labels: Labels, jobs: Collection[Name]) -> Name:
    """The name its control group has, where there is one. Slurm has had SLUIDs for longer than it names groups so."""
    number = labels.number or ""
    return (scheduler, number) if (scheduler, number) in jobs else (scheduler, labels.sluid or number)
