"""Jobs side by side: what was the same, and what was not.

IDs are those of `jobsight job`. Each number is set against the first job's: `1.9 ×` is nearly twice as much.
"""

from typing import Any

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_formats,
    add_settings,
    parser,
    sentences,
    settings_of,
)


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("compare", __doc__)
    accept.add_argument("ids", nargs="+", metavar="ID", help="jobs' ids or keys, two or more")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    add_settings(accept)
    add_formats(accept)
    given = accept.parse_args(arguments)
    if len(given.ids) < 2:
        raise WrongUseError("two jobs or more: jobsight compare ID ID …")
    found = _read(given.store or settings_of(given.settings).store.place, given.ids)
    print(_shown(found, given.format))
    return 0


def _read(path: str, ids: list[str]) -> list[dict[str, Any]]:
    from jobsight.show.reader import open_reader
    from jobsight.store.protocol import StoreError

    try:
        reader = open_reader(path)
        try:
            return [_one(reader, name) for name in ids]
        finally:
            reader.close()
    except StoreError as error:
        raise FailedError(str(error)) from None


def _one(reader: Any, name: str) -> dict[str, Any]:
    matches = reader.named(name)
    found: dict[str, Any] | None = reader.job(matches[0]["key"]) if matches else None
    if found is None:
        raise FailedError(f"no job {name}; `jobsight jobs --text {name}` searches")
    return found


def _shown(jobs: list[dict[str, Any]], form: str) -> str:
    from jobsight.show.comparison import name, rows
    from jobsight.show.terminal import export, safe, table

    if form == "json":
        return export([{"summary": job["summary"], "answers": job["answers"]} for job in jobs], form)
    if form != "table":
        return export([job["summary"] for job in jobs], form)
    # The first job has nothing to be set against.
    heads, lines = ["", name(jobs[0])], [[row.label, row.cells[0]] for row in rows(jobs)]
    for place, job in enumerate(jobs[1:], 1):
        heads += [name(job), ""]
        for line, row in zip(lines, rows(jobs), strict=True):
            line += [row.cells[place], row.times[place]]
    verdicts = [safe(f"{name(job)}: {job['verdict']}") for job in jobs]
    return "\n".join([*verdicts, "", table([safe(head) for head in heads], lines)])
