"""What one job used on one node between two samples: the table that lists, pages and summaries are made of."""

from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds


@record
class Usage:
    """One job on one node, from one sample to the next."""

    job_key: str = label("The job.")
    source: str = label("Who counted: `cgroup` for the job as a whole, `process` for the sum over its processes.")
    seconds: Seconds = gauge("Length of the interval that ends at this row's time.")
    covered: Seconds = gauge("Of that, how much was observed. Less than `seconds` where messages are missing.")
    cpu_time: Seconds | None = counter("CPU time used in the interval.", default=None)
    cpus: Count | None = gauge("Logical CPUs the job may use here.", default=None)
    memory: Bytes | None = gauge("Memory of its own at the end of the interval.", default=None)
    memory_cache: Bytes | None = gauge("Page cache charged to it.", default=None)
    memory_limit: Bytes | None = gauge("What it may use here.", default=None)
    threads: Count | None = gauge("Threads.", default=None)
    processes: Count | None = gauge("Processes.", default=None)
    read: Bytes | None = counter("Bytes read from storage in the interval.", default=None)
    written: Bytes | None = counter("Bytes written to storage in the interval.", default=None)
    oom_kills: Count | None = counter("Processes killed for want of memory in the interval.", default=None)
