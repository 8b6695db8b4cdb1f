"""What lies between here and AWS: names, firewalls, proxies, certificates."""

from __future__ import annotations

import trustme

from tests.integration.probes.world import Case, World
from tests.servers.fault_proxy import delay
from tests.servers.local_sockets import (
    LONG_AGO,
    answering,
    authority_file,
    black_hole,
    http_answer,
    over_tls,
    silent,
)

_BLOCKED = http_answer("403 Forbidden", "<html>Blocked</html>", "Content-Type: text/html")


def _proxy_down(world: World) -> None:
    world.environment.setenv("HTTP_PROXY", "http://127.0.0.1:9")


def _hangs_once_written(world: World) -> None:
    world.proxy.on("GetObject", delay(60))


def _tunnel(world: World, status: str) -> None:
    port = answering(world.cleanup, http_answer(status))
    world.environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    world.endpoints(sts="https://sts.us-east-1.amazonaws.com")


def _not_a_proxy(world: World) -> None:
    world.environment.setenv("HTTPS_PROXY", "proxy.example.com:port")
    world.endpoints(sts="https://sts.us-east-1.amazonaws.com")


def _through(world: World, page: str) -> None:
    port = answering(world.cleanup, page)
    world.environment.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")


def _tls(
    world: World, name: str = "127.0.0.1", *, trusted: bool = True, expired: bool = False
) -> None:
    authority = trustme.CA()
    if trusted:
        file = authority_file(authority, world.folder)
        world.environment.setenv("AWS_CA_BUNDLE", str(file))
    port = over_tls(world.cleanup, authority, name, LONG_AGO if expired else None)
    world.endpoints(sts=f"https://127.0.0.1:{port}")


def _no_bundle(world: World) -> None:
    _tls(world)
    world.environment.setenv("AWS_CA_BUNDLE", "/no/such/bundle.pem")


def _empty_bundle(world: World) -> None:
    _tls(world)
    (world.folder / "authority.pem").write_text("see the wiki\n")


def _plain_to_tls(world: World) -> None:
    _tls(world)
    sts = world.destination.endpoints.sts or ""
    world.endpoints(sts=sts.replace("https:", "http:"))


def _from_environment(world: World, url: str) -> None:
    world.change(endpoints=type(world.destination.endpoints)(s3=world.proxy.endpoint))
    world.environment.setenv("AWS_ENDPOINT_URL_STS", url)


NETWORKS = [
    Case(
        "nobody listens at the STS endpoint",
        lambda world: world.endpoints(sts="http://127.0.0.1:9"),
        *("identity", "EndpointConnectionError", "the server is down"),
    ),
    Case(
        "nobody listens at the S3 endpoint",
        lambda world: world.endpoints(s3="http://127.0.0.1:9"),
        *("bucket", "EndpointConnectionError", "the server is down"),
    ),
    Case(
        "host name that does not resolve",
        lambda world: world.endpoints(s3="http://s3.invalid"),
        *("bucket", "EndpointConnectionError", "misspelt or the region does not exist"),
    ),
    Case(
        "endpoint that never answers",
        lambda world: world.endpoints(s3=f"http://127.0.0.1:{silent(world.cleanup)}"),
        *("bucket", "ReadTimeoutError", "does not respond"),
        timeout=15,
    ),
    Case(
        "store that stops answering half-way",
        _hangs_once_written,
        *("get", "TimedOut", "does not respond"),
        timeout=10,
    ),
    Case(
        "https to a server that speaks http",
        lambda world: world.endpoints(s3=world.proxy.endpoint.replace("http:", "https:")),
        *("bucket", "SSLError", "the server uses http"),
    ),
    Case(
        "proxy that is down",
        _proxy_down,
        *("identity", "ProxyConnectionError", "HTTP_PROXY"),
    ),
    Case(
        "firewall that drops packets",
        lambda world: world.endpoints(sts=f"http://127.0.0.1:{black_hole(world.cleanup)}"),
        *("identity", "ConnectTimeoutError", "a firewall or security group drops"),
        timeout=8,
    ),
    Case(
        "variable that sends STS elsewhere",
        lambda world: _from_environment(world, "http://127.0.0.1:9"),
        *("identity", "EndpointConnectionError", "AWS_ENDPOINT_URL_STS sends this call to"),
    ),
    Case(
        "variable with an endpoint that is no URL",
        lambda world: _from_environment(world, "sts.example.com"),
        *("credentials", "InvalidInput", "from AWS_ENDPOINT_URL_STS"),
    ),
    Case(
        "web site in the place of STS",
        lambda world: world.endpoints(
            sts=f"http://127.0.0.1:{answering(world.cleanup, http_answer('200 OK', '<html/>'))}"
        ),
        *("identity", "ResponseParserError", "a web site or another program responds"),
    ),
    Case(
        "proxy that wants a password",
        lambda world: _tunnel(world, "407 Proxy Authentication Required"),
        *("identity", "ProxyAuthenticationRequired", "HTTPS_PROXY=http://USER:PASSWORD@"),
    ),
    Case(
        "proxy that does not let AWS through",
        lambda world: _tunnel(world, "403 Forbidden"),
        *("identity", "ProxyRefused", "the proxy blocks this host"),
    ),
    Case(
        "proxy that is not a URL",
        _not_a_proxy,
        *("identity", "HTTPClientError", "write it as http://HOST:PORT"),
    ),
    Case(
        "proxy that answers with a page of its own",
        lambda world: _through(world, _BLOCKED),
        *("identity", "Unknown", "its page has no AWS error code"),
    ),
    Case(
        "proxy that cannot reach a host inside the network",
        lambda world: _through(world, http_answer("502 Bad Gateway")),
        *("identity", "502", "belongs into NO_PROXY"),
    ),
    Case(
        "http to a server that speaks https",
        _plain_to_tls,
        *("identity", "ConnectionClosedError", "the server uses https"),
    ),
    Case(
        "certificate of an authority that is not trusted",
        lambda world: _tls(world, trusted=False),
        *("identity", "CertificateUntrusted", "AWS_CA_BUNDLE"),
    ),
    Case(
        "certificate for another host",
        lambda world: _tls(world, "s3.example.com"),
        *("identity", "CertificateForAnotherHost", "use a name that the certificate contains"),
    ),
    Case(
        "certificate that has expired",
        lambda world: _tls(world, expired=True),
        *("identity", "CertificateExpired", "has to be renewed"),
    ),
    Case(
        "file of authorities that is not there",
        _no_bundle,
        *("identity", "FileUnreadable", "correct the path in AWS_CA_BUNDLE"),
    ),
    Case(
        "file of authorities that holds none",
        _empty_bundle,
        *("identity", "FileUnreadable", "correct the path in AWS_CA_BUNDLE"),
    ),
]
