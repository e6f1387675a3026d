"""Settings: defaults for everything, one sentence for every mistake."""

import pytest

from jobsight.settings import SettingsError, from_values, parse

EXAMPLE = """
cluster: fox
sinks:
  - directory: {path: /var/spool/jobsight}
  - http: {url: https://monitor.example/ingest, token_file: /etc/jobsight/token}
spool: {path: /var/lib/jobsight/spool, size: 512 MiB, age: 7d}
collect:
  process: {every: 30s, exclude_users: [root, nobody]}
  cpu: {every: 1m30s}
  cgroup: {enabled: false}
"""


def test_every_key_has_a_default() -> None:
    settings = from_values({})
    assert settings.cluster == "local"
    assert {plan.name for plan in settings.collect if plan.enabled} >= {"cpu", "process", "cgroup"}


def test_the_example_of_the_design_reads() -> None:
    settings = parse(EXAMPLE, "agent.yaml")
    plans = {plan.name: plan for plan in settings.collect}
    assert settings.cluster == "fox"
    assert settings.spool.size == 512 * 2**20
    assert settings.spool.age == 7 * 86400.0
    assert plans["process"].options.exclude_users == ("root", "nobody")
    assert plans["cpu"].every == 90
    assert not plans["cgroup"].enabled
    assert [sink.name for sink in settings.sinks] == ["directory", "http"]
    assert settings.sinks[1].options.token_file == "/etc/jobsight/token"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("clutser: fox", "f.yaml: unknown key clutser; known here: cluster"),
        ("collect: {prozess: {}}", "f.yaml: unknown key collect.prozess; known here: agent, allocation, cgroup"),
        ("collect: {process: {evry: 30s}}", "f.yaml: unknown key collect.process.evry; known here: "),
        ("collect: {process: {every: soon}}", "f.yaml: collect.process.every: expected a duration"),
        ("collect: {process: {every: 0}}", "f.yaml: collect.process.every: must be more than nothing"),
        ("collect: {process: {enabled: 7}}", "f.yaml: collect.process.enabled: expected true or false, got 7"),
        ("collect: {process: {exclude_users: root}}", "f.yaml: collect.process.exclude_users: expected a list"),
        ("collect: 7", "f.yaml: collect: expected keys and values, got 7"),
        ("spool: {size: lots}", "f.yaml: spool.size: expected a size such as 512 MiB"),
        ("sinks: http", "f.yaml: sinks: expected a list"),
        ("sinks: [{carrier_pigeon: {}}]", "f.yaml: sinks[0]: no sink 'carrier_pigeon'; there are directory, http"),
        ("sinks: [{http: {}}]", "f.yaml: sinks[0].http.url is needed"),
        ("sinks: [{http: {url: 7}}]", "f.yaml: sinks[0].http.url: expected text, got 7"),
        ("cluster: {a: b", "f.yaml: not YAML: "),
        ("[1, 2]", "f.yaml: expected keys and values, got [1, 2]"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_file_and_key(text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text, "f.yaml")
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
