"""The HTTP endpoint of a process that stays."""

from __future__ import annotations

import socket

import pytest
import requests

from lakeload.monitoring import endpoint
from lakeload.monitoring.endpoint import Endpoint, parse_address
from lakeload.monitoring.metrics import Metrics
from lakeload_jobs.contract.errors import InvalidInput
from tests.open_metrics import samples
from tests.unit.monitoring.documents import LOADED, document


def get(served: Endpoint, path: str) -> requests.Response:
    return requests.get(f"http://127.0.0.1:{served.port}{path}", timeout=10)


def test_endpoint_serves_the_metrics_that_were_published_last() -> None:
    metrics = Metrics("shop")
    with Endpoint("127.0.0.1:0") as served:
        before = get(served, "/metrics")
        for _ in range(2):
            metrics.add(document(LOADED), ("lake.orders",))
            served.publish(metrics.text())
        after = get(served, "/metrics?x=1")
        other = get(served, "/")

    assert samples(before.text) == []
    assert after.headers["Content-Type"].startswith("application/openmetrics-text")
    assert ("lakeload_table_rows_total", 6) in {
        (one.name, one.value) for one in samples(after.text)
    }
    assert other.status_code == 404


def test_healthz_is_503_after_too_long_without_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Endpoint("127.0.0.1:0") as served:
        first = get(served, "/healthz").status_code
        monkeypatch.setattr(endpoint, "SILENCE_SECONDS", -1.0)
        silent = get(served, "/healthz").status_code
        monkeypatch.undo()
        served.alive()
        again = get(served, "/healthz").status_code

    assert (first, silent, again) == (200, 503, 200)


def test_client_that_sends_nothing_keeps_no_other_waiting() -> None:
    with Endpoint("127.0.0.1:0") as served, socket.create_connection(("127.0.0.1", served.port)):
        assert get(served, "/healthz").status_code == 200


def test_port_in_use_is_an_error_that_names_the_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match="address already in use") as raised:
            Endpoint(f"127.0.0.1:{port}")

    assert raised.value.message == f"`--listen 127.0.0.1:{port}`: address already in use"
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        ("10.0.0.7:1", ("10.0.0.7", 1)),
        (":9464", ("127.0.0.1", 9464)),
        ("9464", ("127.0.0.1", 9464)),
    ],
)
def test_address_without_a_host_is_on_the_loopback(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "127.0.0.1", "a b:1", "127.0.0.1:65536", "http://a:1"])
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not an address"):
        parse_address(text)
