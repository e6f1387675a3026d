"""What a PostgreSQL store holds, table by table."""

from jobsight.store.pgreader import Reader
from jobsight.store.pgtable import Table
from jobsight.store.status import Status, TableStatus

# A table with its indexes, and its parts with theirs, be they partitions or chunks. What TimescaleDB has compressed
# is elsewhere and does not count.
SIZE = """SELECT sum(pg_total_relation_size(part))::bigint, count(*) - 1
FROM (SELECT inhrelid AS part FROM pg_inherits WHERE inhparent = ?::regclass UNION ALL SELECT ?::regclass) AS parts"""


def status(place: str, reader: Reader, tables: dict[str, Table], inbox: int) -> Status:
    """Every row is counted, which takes a while where there are many. There are no files: parts stand there."""
    found = []
    for name in sorted(["run", *tables]):
        table = tables.get(name)
        rows = table.rows if table else name
        ((count, oldest, newest),) = reader.query(f"SELECT count(*), min(time), max(time) FROM {rows}")
        size, parts = _size(reader, rows)
        size += _size(reader, table.series)[0] if table else 0
        found.append(TableStatus(name, count, 0, parts, size, oldest, newest))
    ((jobs, first, last),) = reader.query("SELECT count(*), min(started), max(seen) FROM job")
    total = sum(table.size for table in found)
    return Status(place, found, jobs, first, last, inbox, total, 0, _size(reader, "job")[0])


def _size(reader: Reader, table: str) -> tuple[int, int]:
    """Bytes, and in how many parts."""
    ((size, parts),) = reader.query(SIZE, [table, table])
    return int(size), int(parts)
