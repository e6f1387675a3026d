"""Take messages in, keep them, and show jobs: ingest, API and dashboard on one port."""

from jobsight.cli.arguments import FailedError, add_settings, parser, sentences, settings_of
from jobsight.settings import DATABASES


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("serve", __doc__)
    add_settings(accept)
    accept.add_argument("--listen", metavar="HOST:PORT", help="default 127.0.0.1:9020")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    given = accept.parse_args(arguments)
    settings = settings_of(given.settings)
    if given.listen:
        settings = settings._replace(serve=settings.serve._replace(listen=given.listen))
    if given.store:
        chosen = {"url": given.store} if given.store.startswith(DATABASES) else {"path": given.store, "url": None}
        settings = settings._replace(store=settings.store._replace(**chosen))
    from jobsight.show.server import ListenError, listen, serve, url
    from jobsight.store.protocol import StoreError

    try:
        link = listen(settings.serve.listen)
        print(f"jobsight serves on {url(link)}/", flush=True)
        serve(settings, link)
    except (ListenError, StoreError) as error:
        raise FailedError(str(error)) from None
    return 0
