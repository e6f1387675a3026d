"""Settings of what listens."""

import pytest

from jobsight.settings import SettingsError, parse


def test_access_is_off_until_it_is_named() -> None:
    assert parse("serve: {}", "f").serve.access is None
    access = parse("serve: {access: {}}", "f").serve.access
    assert access is not None
    assert access.user_headers == ("X-Grafana-User",)


def test_accounts_have_their_coordinators() -> None:
    access = parse("serve: {access: {coordinators: {physics: [ada, bob], 42: [carol]}}}", "f").serve.access
    assert access is not None
    assert access.coordinators == {"physics": ("ada", "bob"), "42": ("carol",)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("access: {trusted_proxies: [proxy.example]}", "access.trusted_proxies: 'proxy.example' does not"),
        ("access: {trusted_proxies: [10.0.0.1/8]}", "access.trusted_proxies: 10.0.0.1/8 has host bits set"),
        ("access: {coordinators: {'': [ada]}}", "access.coordinators: an account has no name"),
        ("access: {coordinators: {physics: ada}}", "serve.access.coordinators.physics: expected a list"),
        ("access: {admins: ['']}", "access: a user or group has no name"),
        ("access: {admin: [ada]}", "unknown key serve.access.admin; known here: admins"),
        ("cert_file: a, key_file: b, web_config_file: c", "HTTPS is set by cert_file or by web_config_file"),
    ],
)
def test_what_cannot_be_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(f"serve: {{{text}}}", "f")
    assert said in str(caught.value)
