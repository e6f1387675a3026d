"""Take messages in, keep them, and show jobs: ingest, API and dashboard on one port.

With --ingest-only it takes messages in, over HTTP and from Kafka, and shows nothing: any number of such servers may
write into one PostgreSQL. One server at a time turns messages into rows and jobs; if it falls another goes on.
"""

import sys

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_settings,
    add_web_config,
    parser,
    sentences,
    settings_of,
)
from jobsight.compat import batchflags
from jobsight.serving import check
from jobsight.settings import DATABASES


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("serve", __doc__)
    add_settings(accept)
    accept.add_argument("--listen", metavar="HOST:PORT", help="default 127.0.0.1:9020")
    add_web_config(accept)
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    accept.add_argument("--ingest-only", action="store_true", help="no pages and no API; needs PostgreSQL")
    batchflags.add(accept)
    given = accept.parse_args(arguments)
    settings = settings_of(given.settings)
    if given.listen:
        settings = settings._replace(serve=settings.serve._replace(listen=given.listen))
    if given.web_config:
        settings = settings._replace(serve=settings.serve._replace(web_config_file=given.web_config))
    if given.store:
        chosen = {"url": given.store} if given.store.startswith(DATABASES) else {"path": given.store, "url": None}
        settings = settings._replace(store=settings.store._replace(**chosen))
    try:
        settings = batchflags.applied(settings, given)
        check(settings.serve)
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    for remark in batchflags.remarks(given):
        print(f"jobsight: {remark}", file=sys.stderr)
    if given.ingest_only:
        settings = settings._replace(serve=settings.serve._replace(ingest_only=True))
    if settings.serve.ingest_only and settings.store.url is None:
        raise WrongUseError("--ingest-only needs a database: the embedded store has one server, which must show it")
    from jobsight.show import tls
    from jobsight.show.server import ListenError, listen, serve, url
    from jobsight.store.protocol import StoreError

    try:
        link = listen(settings.serve.listen)
        print(
            f"jobsight serves on {url(link, secure=tls.secure(settings.serve, tls.watched(settings.serve)))}/",
            flush=True,
        )
        serve(settings, link)
    except (ListenError, StoreError) as error:
        raise FailedError(str(error)) from None
    return 0
