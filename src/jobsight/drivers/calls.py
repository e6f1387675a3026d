"""What asking a scheduler has cost since the agent started: collectors count here, the agent's message tells it."""


class Calls:
    """Programs run, and as whom."""

    def __init__(self) -> None:
        # None as long as nobody asked anything: a node that runs no programs has no noughts to show.
        self.count: int | None = None
        self.failed = 0
        self.seconds = 0.0
        self.way: str | None = None

    def add(self, seconds: float, *, good: bool) -> None:
        self.count = (self.count or 0) + 1
        self.failed += not good
        self.seconds += seconds
