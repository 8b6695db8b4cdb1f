"""Findings about proxies, variables, the endpoint and the clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakeload.checks import CheckStatus
from lakeload.machine.doctor.access import (
    clock,
    endpoint_of,
    judge_clock,
    proxies,
    proxy_for,
    silent_endpoint,
    variables,
)
from lakeload.machine.doctor.model import Need
from lakeload.ui.checks import word
from lakeload_jobs.contract.spec import CredentialsSpec
from tests.unit.machine.doctor.machines import context, destination, statuses

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY = "AWS_ACCESS_KEY_ID"


class _Noon(BaseHTTPRequestHandler):
    """Refuses every HEAD, as S3 does without a signature, at noon."""

    def do_HEAD(self) -> None:
        self.send_response_only(403)
        if self.path != "/dateless":
            self.send_header("Date", format_datetime(NOON, usegmt=True))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def noon() -> Iterator[str]:
    """Yield the URL of an endpoint at which it is always noon."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Noon) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("seconds", "status", "text"),
    [
        (0, "ok", "within a minute"),
        (-90, "warning", "90 s behind"),
        (600, "problem", "10 minutes ahead of"),
    ],
)
def test_the_clock_is_compared_with_the_endpoints(
    tmp_path: Path, noon: str, seconds: int, status: str, text: str
) -> None:
    machine = context(tmp_path, need=Need(destination=destination(s3=noon)))
    here = NOON + timedelta(seconds=seconds)
    (finding,) = clock(machine, now=here.timestamp)
    assert (finding.name, word(finding)) == ("clock", status)
    assert text in finding.found
    assert ("chrony" in finding.command) == (status != "ok")


def test_clock_check_without_a_date_is_a_warning(tmp_path: Path, noon: str) -> None:
    need = Need(destination=destination(s3=f"{noon}/dateless"))
    (finding,) = clock(context(tmp_path, need=need))
    assert (finding.status, "no Date header" in finding.found) == (CheckStatus.WARNING, True)


def test_the_environments_proxy_is_used_and_its_password_not_shown(
    tmp_path: Path, noon: str
) -> None:
    far = Need(destination=destination(s3="http://s3.example.invalid"))
    through = noon.replace("://", "://user:canary@")
    (finding,) = clock(context(tmp_path, need=far, http_proxy=through), now=NOON.timestamp)
    assert finding.status is CheckStatus.PASSED
    dead = "http://user:canary@127.0.0.1:1"
    (finding,) = clock(context(tmp_path, need=far, http_proxy=dead))
    assert (finding.name, finding.status) == ("endpoint", CheckStatus.FAILED)
    assert "through the proxy `http://127.0.0.1:1`" in finding.found
    assert "canary" not in str(finding)


def test_unreachable_endpoint_is_a_problem_only_where_needed(tmp_path: Path) -> None:
    dead = "http://127.0.0.1:1"
    (asked,) = clock(context(tmp_path, need=Need(destination=destination(s3=dead))))
    (general,) = clock(context(tmp_path, AWS_ENDPOINT_URL=dead))
    assert (asked.status, general.status) == (CheckStatus.FAILED, CheckStatus.WARNING)
    assert asked.command == f"curl -sSI {dead}"


def test_silent_endpoint_is_unreachable(tmp_path: Path) -> None:
    need = Need(destination=destination(s3="http://user:canary@s3.example.invalid"))
    finding = silent_endpoint(context(tmp_path, need=need, seconds=2))
    assert (finding.name, finding.status) == ("endpoint", CheckStatus.FAILED)
    assert finding.found.endswith("does not respond: no response within 2 s")
    assert "canary" not in str(finding)


def test_offline_sends_no_request(tmp_path: Path) -> None:
    need = Need(destination=destination(s3="http://127.0.0.1:1"))
    (finding,) = clock(context(tmp_path, need=need, offline=True))
    assert finding.status is CheckStatus.SKIPPED


def test_a_clock_just_off_is_not_yet_a_problem(tmp_path: Path) -> None:
    assert judge_clock(context(tmp_path), 59.0, "x").status is CheckStatus.PASSED
    assert judge_clock(context(tmp_path), 299.0, "x").status is CheckStatus.WARNING
    assert judge_clock(context(tmp_path), -300.0, "x").status is CheckStatus.FAILED


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "https://s3.us-east-1.amazonaws.com/"),
        ({"AWS_DEFAULT_REGION": "cn-north-1"}, "https://s3.cn-north-1.amazonaws.com.cn/"),
        ({"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}, "http://b"),
    ],
)
def test_without_a_document_the_environment_names_the_endpoint(
    tmp_path: Path, environment: dict[str, str], url: str
) -> None:
    assert endpoint_of(context(tmp_path, environment)) == url


@pytest.mark.parametrize(
    ("environment", "status", "command"),
    [
        ({}, "ok", ""),
        ({"HTTPS_PROXY": "http://p:3128"}, "ok", ""),
        (
            {"HTTPS_PROXY": "http://u:canary@p:1", "https_proxy": "http://q:1"},
            "warning",
            'export HTTPS_PROXY="$https_proxy"',
        ),
        ({"HTTPS_PROXY": "http://p:nan"}, "problem", "export HTTPS_PROXY="),
        (
            {"HTTP_PROXY": "http://p:1", "NO_PROXY": "169.254.169.254"},
            "warning",
            'export HTTPS_PROXY="${http_proxy-$HTTP_PROXY}"',
        ),
        (
            {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.b"},
            "warning",
            "export NO_PROXY=a.b,169.254.169.254 no_proxy=a.b,169.254.169.254",
        ),
        (
            {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:1", KEY: "x"},
            "ok",
            "",
        ),
        (
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.b,10.0.0.0/8,*.c.d, http://e:1/, f g"},
            "warning",
            "export NO_PROXY=a.b,.c.d,e,f,g no_proxy=a.b,.c.d,e,f,g",
        ),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.b,*"}, "warning", "export NO_PROXY=a.b "),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "ok", ""),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".b, 10.1.2.3,[::1]"}, "ok", ""),
        ({"NO_PROXY": "10.0.0.0/8"}, "ok", ""),
    ],
)
def test_ineffective_proxy_settings_are_reported(
    tmp_path: Path, environment: dict[str, str], status: str, command: str
) -> None:
    (finding,) = proxies(context(tmp_path, environment))
    assert word(finding) == status
    assert finding.command.startswith(command)
    assert bool(finding.command) == bool(command)
    assert "canary" not in str(finding)


def test_lower_case_proxy_variable_takes_precedence() -> None:
    both = {"https_proxy": "http://lower:1", "HTTPS_PROXY": "http://upper:1", "no_proxy": "b.c"}
    assert proxy_for("https://a.b", both) == "http://lower:1"
    assert proxy_for("https://b.c:8443/x", both) is None
    assert proxy_for("https://a.b", {**both, "https_proxy": ""}) is None


def test_local_endpoint_outside_no_proxy_is_reported(tmp_path: Path) -> None:
    need = Need(destination=destination(s3="http://127.0.0.1:9000"))
    proxy = {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:1", KEY: "x"}
    (finding,) = proxies(context(tmp_path, proxy, need=need))
    assert finding.command == "export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1"
    (finding,) = proxies(context(tmp_path, proxy, need=need, NO_PROXY="127.0.0.1"))
    assert finding.status is CheckStatus.PASSED


def test_network_in_no_proxy_is_replaced_by_the_endpoint_in_it(tmp_path: Path) -> None:
    need = Need(destination=destination(s3="http://10.1.2.3:9000"))
    proxy = {"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}
    (finding,) = proxies(context(tmp_path, {**proxy, KEY: "x"}, need=need))
    assert proxy_for("http://10.1.2.3:9000", proxy) == "http://p:1"
    assert "`10.0.0.0/8`, which matches no host" in finding.found
    assert finding.command == "export NO_PROXY=10.1.2.3 no_proxy=10.1.2.3"


SECRET = "AWS_SECRET_ACCESS_KEY"


@pytest.mark.parametrize(
    ("environment", "name", "status", "command"),
    [
        ({}, "variables", "ok", ""),
        ({KEY: "AKIA1", SECRET: "s"}, "variables", "ok", ""),
        ({KEY: "AKIA1", SECRET: "s", "AWS_PROFILE": "p"}, "aws-identity", "warning", "unset AWS_"),
        ({KEY: "AKIA1"}, "aws-keys", "warning", f"export {SECRET}=…"),
        ({SECRET: "s"}, "aws-keys", "warning", f"export {KEY}=…"),
        ({KEY: "", SECRET: "s"}, "aws-keys", "warning", f"unset {KEY}"),
        ({"AWS_PROFILE": ""}, "aws-keys", "warning", "unset AWS_PROFILE"),
        ({KEY: "AKIA1 ", SECRET: "s"}, "aws-keys", "warning", f'export {KEY}="$(printf'),
        ({KEY: "AKIA1", SECRET: "s\n"}, "aws-keys", "warning", f'export {SECRET}="$(printf'),
        ({KEY: "ASIA1", SECRET: "s"}, "aws-keys", "warning", "export AWS_SESSION_TOKEN=…"),
        (
            {KEY: "AKIA1", SECRET: "s", "AWS_SESSION_TOKEN": "t"},
            "aws-keys",
            "warning",
            "unset AWS_SESSION_TOKEN",
        ),
        (
            {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-east-1"},
            "aws-region",
            "warning",
            'export AWS_DEFAULT_REGION="$AWS_REGION"',
        ),
        ({"AWS_ENDPOINT_URL": "http://x"}, "aws-endpoint", "warning", "unset AWS_ENDPOINT_URL"),
        ({"AWS_CA_BUNDLE": "/gone"}, "ca-bundle", "problem", "unset AWS_CA_BUNDLE"),
        ({"SPARK_CONF_DIR": "/"}, "spark-conf-dir", "warning", "unset SPARK_CONF_DIR"),
        ({"HADOOP_CONF_DIR": "/gone"}, "hadoop-conf-dir", "warning", "unset HADOOP_CONF_DIR"),
        ({"JAVA_TOOL_OPTIONS": "-Da=b -Xmx1g"}, "java-options", "warning", "unset JAVA_TOOL_O"),
        ({"JAVA_TOOL_OPTIONS": "-Da='b"}, "variables", "ok", ""),
        ({"SPARK_LOCAL_IP": "10.0.0.1"}, "spark-local-ip", "warning", "unset SPARK_LOCAL_IP"),
        ({"PYTHONPATH": "/x"}, "pythonpath", "warning", "unset PYTHONPATH"),
    ],
)
def test_each_variable_that_surprises_is_a_finding(
    tmp_path: Path, environment: dict[str, str], name: str, status: str, command: str
) -> None:
    (finding,) = variables(context(tmp_path, environment))
    assert (finding.name, word(finding)) == (name, status)
    assert finding.command.startswith(command)
    assert bool(finding.command) == bool(command)


def test_setting_of_the_file_overrides_variables_without_a_finding(tmp_path: Path) -> None:
    profile = CredentialsSpec(profile="p")
    need = Need(destination=destination(s3="http://x", credentials=profile))
    machine = context(
        tmp_path,
        need=need,
        AWS_ACCESS_KEY_ID="AKIA1",
        AWS_SECRET_ACCESS_KEY="s",
        AWS_PROFILE="q",
        AWS_REGION="eu-west-1",
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ENDPOINT_URL_S3="http://y",
    )
    assert statuses(list(variables(machine))) == {"variables": "ok"}
