"""Files the server's settings name and nobody can read."""

from pathlib import Path

import pytest

from jobsight.serving import Serve
from jobsight.show import server
from jobsight.show.tls import CertificateError, certificate


def test_a_certificate_that_is_a_folder_is_named(tmp_path: Path) -> None:
    options = Serve(cert_file=str(tmp_path), key_file=str(tmp_path))
    with pytest.raises(CertificateError, match=f"serve.cert_file: {tmp_path}: Is a directory"):
        certificate(options, None)


def test_a_token_file_that_is_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(server.ListenError, match=f"serve.token_file: {tmp_path}: Is a directory"):
        server._token(str(tmp_path))
