"""What any sink must do: take messages, deliver each whole and in order, and finish when closed."""

from collections.abc import Callable
from typing import Any

from jobsight.schema.message import Message, Origin, Status
from jobsight.ship.sink import Sink

Deliver = Callable[[Callable[[Sink], None]], list[dict[str, Any]]]


def message(number: int, node: str = "n1", collector: str = "memory") -> Message:
    rows = {"total": (number,), "available": (1,), "free": (1,)}
    time = 1794733024.0 + number
    return Message(Origin("fox", node, "b1"), collector, time, 1.0, 30.0, Status.OK, 0.1, None, {}, rows)


class SinkContract:
    """Subclass with a fixture `deliver`: runs something on an open sink, closes it, returns what arrived."""

    def test_messages_arrive_whole_and_in_order(self, deliver: Deliver) -> None:
        def send(sink: Sink) -> None:
            for number in range(20):
                sink.send(message(number))

        arrived = deliver(send)
        assert [item["rows"]["total"] for item in arrived] == [[number] for number in range(20)]
        assert {item["collector"] for item in arrived} == {"memory"}

    def test_closing_without_a_message_is_fine(self, deliver: Deliver) -> None:
        assert deliver(lambda _: None) == []

    def test_names_that_could_break_a_path_or_a_line_do_not(self, deliver: Deliver) -> None:
        names = ["../../etc/passwd", "a\nb", "sub/dir"]

        def send(sink: Sink) -> None:
            for name in names:
                sink.send(message(0, node=name))

        arrived = deliver(send)
        assert sorted(item["node"] for item in arrived) == sorted(names)
