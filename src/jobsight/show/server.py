"""The server process: the application on uvicorn, and a thread that digests what comes in."""

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import uvicorn

from jobsight import files
from jobsight.analyse.keeper import open_database, open_store
from jobsight.analyse.sites import site_of
from jobsight.analyse.watch import Watch
from jobsight.exporter.certificate import renewing
from jobsight.exporter.webconfig import Watched
from jobsight.ingest.convoy import Append
from jobsight.ingest.gate import Gate
from jobsight.ingest.kafka import Consumer
from jobsight.ingest.limit import Limits
from jobsight.ingest.quarantine import Quarantine
from jobsight.ingest.token import Tokens, new_secret
from jobsight.serving import Kafka
from jobsight.settings import Settings
from jobsight.show import peer, tls
from jobsight.show.app import application
from jobsight.show.digester import Digester, Work
from jobsight.show.notice import Notice, posted
from jobsight.store.protocol import Store
from jobsight.store.retention import retention
from jobsight.store.tokens import open_tokens

# Longer than agents usually pause between two batches: a TLS handshake costs more than a message.
KEPT_ALIVE = 90


class ListenError(RuntimeError):
    """The address cannot be listened on."""


def listen(address: str) -> socket.socket:
    """A bound socket, or a sentence that says why not."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ListenError(f"expected an address such as 127.0.0.1:9020, got {address!r}")
    host = host.strip("[]") or "127.0.0.1"
    link = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        link.bind((host, int(port)))
        # From here on senders wait for an answer in place of being refused one.
        link.listen(128)
    except (OSError, OverflowError) as error:
        link.close()
        raise ListenError(f"cannot listen on {address}: {error}") from None
    return link


def url(link: socket.socket, *, secure: bool) -> str:
    host, port = link.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"{'https' if secure else 'http'}://{host}:{port}"


@contextmanager
def consuming(options: Kafka | None, append: Append, quarantine: Quarantine) -> Iterator[None]:
    """While this lasts messages come from Kafka too, if the settings name brokers."""
    if options is None:
        yield
        return
    try:
        consumer = Consumer(options, append, quarantine)
    except ValueError as error:
        raise ListenError(f"serve.kafka: {error}") from None
    try:
        yield
    finally:
        consumer.stop()


class Server(uvicorn.Server):
    """uvicorn, stopped our way: what feeds us is stopped first, and no signal is raised a second time."""

    def __init__(self, config: uvicorn.Config, before_stop: Callable[[], None], peers: socket.socket | None) -> None:
        super().__init__(config)
        self._before_stop = before_stop
        self._peers = peers

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As ever, and on the socket beside the store too: plain, whatever others are spoken to with."""
        await super().startup(sockets)
        if self._peers is None or self.should_exit:
            return
        protocol = peer.knowing(self.config.http_protocol_class)

        def made() -> asyncio.Protocol:
            found: asyncio.Protocol = protocol(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return found

        loop = asyncio.get_running_loop()
        self.servers.append(await loop.create_unix_server(made, sock=self._peers))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: threading.Thread(target=self._stop).start())
        yield

    def _stop(self) -> None:
        self._before_stop()
        self.should_exit = True


def serve(settings: Settings, link: socket.socket, before_stop: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT."""
    web = tls.watched(settings.serve)
    try:
        certificate = tls.certificate(settings.serve, web)
    except tls.CertificateError as error:
        raise ListenError(str(error)) from None
    fixed = _token(settings.serve.token_file)
    _allow_connections()
    # Of thousands of lists and tuples a second none refers to itself: looking for such costs a tenth of all work.
    gc.set_threshold(50_000, 20, 50)
    # Whoever waits for the interpreter while messages are digested is answering somebody.
    sys.setswitchinterval(0.001)
    with closing(_opened(settings)) as store, closing(open_tokens(settings.store.place)) as tokens:
        own = new_secret()
        gate = Gate(tokens, fixed, own)
        quarantine = Quarantine(os.path.join(settings.store.path, "quarantine"))
        config = _config(settings, link.getsockname()[0], store, quarantine, tokens, gate, web)
        work = Work(retention(settings.store), settings.energy, settings.serve.lustre, Watch(settings.findings).look)
        digester = Digester(store, work)
        try:
            with consuming(settings.serve.kafka, store.append, quarantine), _peers(settings) as peers:
                place = url(link, secure=certificate is not None)
                notice = Notice(place, os.getpid(), certificate, _name(peers, settings))
                with posted(settings.store.path, notice, own):
                    Server(config, before_stop, peers).run(sockets=[link])
        finally:
            digester.stop()
            gate.close()


@contextmanager
def _peers(settings: Settings) -> Iterator[socket.socket | None]:
    """While this lasts, programs on this machine can ask here, if the file system knows such a thing as a socket."""
    folder = settings.store.path
    if settings.serve.access is not None:
        peer.seclude(folder)
    with ExitStack() as stack:
        try:
            link = stack.enter_context(peer.listening(os.path.join(folder, peer.FILE)))
        except OSError as error:
            print(f"jobsight: no socket in {folder}: {error.strerror or error}", file=sys.stderr, flush=True)
            link = None
        yield link


def _name(peers: socket.socket | None, settings: Settings) -> str | None:
    return os.path.join(os.path.abspath(settings.store.path), peer.FILE) if peers else None


def _config(
    settings: Settings,
    host: str,
    store: Store,
    quarantine: Quarantine,
    tokens: Tokens,
    gate: Gate,
    web: Watched | None,
) -> uvicorn.Config:
    options = settings.serve
    if not (host.startswith("127.") or host == "::1") and not gate.needed():
        may = "read and send" if options.access is None else "send"
        print(
            f"jobsight: WARNING: listening on {host} and no token is set: anybody who reaches it can {may}; "
            "make one with `jobsight token add`",
            file=sys.stderr,
            flush=True,
        )
    config = uvicorn.Config(
        application(
            store,
            quarantine,
            tokens,
            gate,
            Limits(options.requests, options.rate, speakers=options.scheduler_nodes),
            local=host in ("127.0.0.1", "::1"),
            shown=not options.ingest_only,
            access=options.access,
            statistics=options.stats,
            stray=options.stray,
            web=web,
            metering=settings.energy,
            findings=settings.findings,
            site=site_of(settings),
        ),
        # What a request says of where it comes from is not what it is: see `show.access`.
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=KEPT_ALIVE,
        ssl_certfile=options.cert_file,
        ssl_keyfile=options.key_file,
        ssl_context_factory=(lambda *_: renewing(web)) if web is not None and web.secure else None,
    )
    try:
        config.load()
    except OSError as error:
        raise ListenError(f"serve.cert_file, serve.key_file: {error.strerror or error}") from None
    return config


def _allow_connections() -> None:
    """Ten thousand agents keep as many connections; the usual bound of a thousand is for programs that use select."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _opened(settings: Settings) -> Store:
    if settings.store.url is None:
        return open_store(settings.store.path, settings.store.backlog)
    # What is refused is kept here all the same.
    files.make_directory(settings.store.path)
    store = open_database(settings.store.url, settings.store.backlog)
    print(f"jobsight uses the {store.report}", flush=True)
    return store


def _token(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        token = files.read_at(path, 0, 4096).decode("ascii", "replace").strip()
    except OSError as error:
        raise ListenError(f"serve.token_file: {path}: {error.strerror}") from None
    if not token:
        raise ListenError(f"serve.token_file: {path} is missing or empty")
    return token
