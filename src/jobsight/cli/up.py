"""Everything on this machine: agent, server and dashboard on the embedded store, no settings needed."""

import os
import signal
import subprocess
import sys

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_settings,
    parser,
    seconds,
    sentences,
    settings_of,
)

# Quick enough that a newcomer sees charts within a minute, cheap enough to leave running.
EVERY = 10.0


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("up", __doc__)
    add_settings(accept)
    accept.add_argument("--listen", metavar="HOST:PORT", help="default 127.0.0.1:9020")
    accept.add_argument("--every", metavar="SECONDS", type=seconds, default=EVERY, help="how often to sample (10)")
    given = accept.parse_args(arguments)
    settings = settings_of(given.settings)
    if given.listen:
        settings = settings._replace(serve=settings.serve._replace(listen=given.listen))
    try:
        from jobsight.show.server import ListenError, listen, serve, url
        from jobsight.store.protocol import StoreError
    except ModuleNotFoundError as error:
        raise FailedError(f"the server needs {error.name}: pip install 'jobsight[server]'") from None
    from jobsight.show.notice import TOKEN

    if settings.serve.cert_file or settings.serve.web_config_file:
        # Its agent would have to trust a certificate that is not for the loopback address.
        raise WrongUseError(
            "`up` speaks no HTTPS: take serve.cert_file or web_config_file out, or run `serve` and `agent`"
        )
    try:
        link = listen(settings.serve.listen)
        place = url(link, secure=False)
        token_file = settings.serve.token_file or os.path.join(settings.store.path, TOKEN)
        agent = _start_agent(given.settings, f"{place}/ingest", given.every, token_file)
        print(
            f"jobsight: dashboard at {place}/   (Ctrl-C stops; data stays in {settings.store.path})",
            flush=True,
        )
        try:
            serve(settings, link, before_stop=lambda: _stop(agent))
        finally:
            _stop(agent)
    except (ListenError, StoreError) as error:
        raise FailedError(str(error)) from None
    return 0


def _start_agent(settings: str | None, url: str, every: float, token: str) -> subprocess.Popen[bytes]:
    """The agent as a process of its own, as it is on a node.

    In a session of its own, so that Ctrl-C leaves it the time to hand over; on a pipe, so that it ends with us
    even if we are killed.
    """
    command = [sys.executable, "-m", "jobsight", "agent", "--leash", "--url", url, "--every", str(every)]
    if settings:
        command += ["--settings", settings]
    command += ["--token-file", token]
    return subprocess.Popen(command, start_new_session=True, stdin=subprocess.PIPE)


def _stop(agent: subprocess.Popen[bytes]) -> None:
    if agent.poll() is None:
        os.kill(agent.pid, signal.SIGTERM)
        try:
            agent.wait(10)
        except subprocess.TimeoutExpired:
            agent.kill()
