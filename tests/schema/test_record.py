"""Records: declared once, everything else derived."""

import pytest

from jobsight.schema.record import columns, counter, fields_of, gauge, label, record
from jobsight.schema.units import Bytes, Seconds


@record
class Disk:
    """Traffic of one block device since boot."""

    device: str = label("Name the kernel gave the device.")
    read: Bytes = counter("Bytes read.")
    busy: Seconds | None = gauge("Time with work to do.", default=None)


def test_a_row_has_names_and_is_a_tuple() -> None:
    row = Disk(device="sda", read=Bytes(7))
    assert (row.device, row.read, row.busy) == ("sda", 7, None)
    assert tuple(row) == ("sda", 7, None)  # type: ignore[arg-type]
    assert repr(row) == "Disk(device='sda', read=7, busy=None)"


def test_a_required_field_is_required() -> None:
    with pytest.raises(TypeError):
        Disk(device="sda")  # type: ignore[call-arg]


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError):
        Disk(device="sda", read=Bytes(1), wrote=2)  # type: ignore[call-arg]


def test_a_field_without_a_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="needs label"):

        @record
        class Wrong:
            size: int = 7


def test_fields_know_kind_unit_and_meaning() -> None:
    device, read, busy = fields_of(Disk)
    assert (device.kind, read.kind, busy.kind) == ("label", "counter", "gauge")
    assert (device.unit, read.unit, busy.unit) == (str, Bytes, Seconds)
    assert (device.optional, busy.optional) == (False, True)
    assert read.help == "Bytes read."


def test_rows_turn_into_columns() -> None:
    rows = [Disk(device="sda", read=Bytes(1)), Disk(device="sdb", read=Bytes(2), busy=Seconds(0.5))]
    assert columns(Disk, rows) == {"device": ("sda", "sdb"), "read": (1, 2), "busy": (None, 0.5)}
    assert columns(Disk, []) == {}
