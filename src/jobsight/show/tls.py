"""How the server speaks HTTPS: by `serve.cert_file`, or by the web config file."""

from jobsight import files
from jobsight.exporter.webconfig import Watched
from jobsight.host import Host
from jobsight.serving import Serve
from jobsight.settings import values

CERTIFICATE = "-----END CERTIFICATE-----"


class CertificateError(RuntimeError):
    """There is none where one should be."""


def watched(options: Serve) -> Watched | None:
    """The web config file, if one is named. SettingsError if it cannot be used."""
    return Watched(options.web_config_file, _values) if options.web_config_file else None


def secure(options: Serve, web: Watched | None) -> bool:
    return bool(options.cert_file) or (web is not None and web.secure)


def certificate(options: Serve, web: Watched | None) -> str | None:
    """What is shown to those who connect: the first one of the file, those after it are its issuers'."""
    key, path = "serve.cert_file", options.cert_file
    if web is not None and (tls := web.config().tls):
        key, path = "cert_file", tls.cert_file
    if path is None:
        if options.key_file is not None:
            raise CertificateError("serve.key_file: is nothing without serve.cert_file")
        return None
    try:
        text = files.read_at(path, 0, 2**20).decode("ascii", "replace")
    except OSError as error:
        raise CertificateError(f"{key}: {path}: {error.strerror}") from None
    first, end, _ = text.partition(CERTIFICATE)
    if not end:
        raise CertificateError(f"{key}: {path} is missing or holds no certificate in PEM")
    return first + end


def _values(file: str) -> object:
    import os

    from jobsight.settings import SettingsError

    try:
        return values(Host("/").read(os.path.abspath(file).lstrip("/")), file)
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from None
