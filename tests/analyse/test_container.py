"""Containers of a job, from its processes."""

from jobsight.analyse.container import containers
from jobsight.analyse.profile import ProcessUse


def use(pid: int, command: str, cpu: float, *container: str | None, node: str = "n1") -> ProcessUse:
    return ProcessUse(node, pid, command, "ann", 0.0, 9.0, cpu, None, 1, None, None, *container)


def test_processes_of_one_container_are_told_together_and_the_busiest_first() -> None:
    solver = ("podman", "3a9c3a9c3a9c", "solver", "localhost/box:1")
    found = containers(
        [
            use(1, "sh", 0.5, *solver),
            use(2, "python", 9.0, *solver, node="n2"),
            use(3, "bash", 50.0),
            use(4, "a.out", 20.0, "charliecloud", None, None, "/img/box"),
            use(5, "java", 1.0, "namespace", None, None, None),
        ]
    )
    assert [(one.runtime, one.processes, one.cpu_time, one.nodes) for one in found] == [
        ("charliecloud", 1, 20.0, ["n1"]),
        ("podman", 2, 9.5, ["n1", "n2"]),
        ("namespace", 1, 1.0, ["n1"]),
    ]
    assert [one.sentence for one in found] == [
        "a.out ran in a container of charliecloud, image /img/box.",
        "python, sh ran in a container of podman, solver (3a9c3a9c3a9c), image localhost/box:1.",
        "java ran with users of its own, as containers do.",
    ]


def test_job_without_containers_has_none() -> None:
    assert containers([use(1, "bash", 1.0)]) == []
