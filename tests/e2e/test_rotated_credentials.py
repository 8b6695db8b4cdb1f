"""Keys, passwords and role sessions that change while `lakeload sync --every` runs."""

from __future__ import annotations

import secrets
from contextlib import closing
from pathlib import Path

import boto3
import pytest

from lakeload.demo.aws import AccessKey, loader_policy
from tests.e2e.conftest import LakeOfFormat
from tests.e2e.rounds import rounds
from tests.e2e.test_rounds import SOURCE, arrives
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, Response, answer
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake
from tests.servers.postgres import Postgres
from tests.servers.short_tokens import ShortTokens

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.usefixtures("warm_spark")]


def write_profile(folder: Path, key: AccessKey) -> None:
    """Replace the keys of the profile at once."""
    text = f"[shop]\naws_access_key_id = {key.access_key_id}\n"
    whole = folder / "aws.part"
    whole.write_text(f"{text}aws_secret_access_key = {key.secret_access_key}\n")
    whole.rename(folder / "aws")


def deny_deleted_keys(proxy: FaultProxy) -> set[str]:
    """Return the set of access key ids that AWS knows no more, empty at first."""
    deleted: set[str] = set()

    def check(request: Request, forward: Forward) -> Response:
        if any(key in request.header("Authorization") for key in deleted):
            return answer(403, "InvalidAccessKeyId")(request, forward)
        return forward(request)

    proxy.on("*", check)
    return deleted


def test_replaced_keys_of_a_profile_cost_one_round_at_most(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path, of_format: LakeOfFormat
) -> None:
    seeded, admin = lake.seeded, lake.server.admin
    admin.put_user_policy(seeded.user, loader_policy(seeded.bucket, seeded.prefix))
    keys = [seeded.base_key, *(admin.create_access_key(seeded.user) for _ in range(2))]
    of_format.write(
        tmp_path,
        tables=[{"table": "t", "path": "landing"}],
        source=SOURCE,
        endpoint=fault_proxy.endpoint,
        destination={"credentials": {"profile": "shop"}},
    )
    (tmp_path / "landing").mkdir()
    deleted = deny_deleted_keys(fault_proxy)
    write_profile(tmp_path, keys[0])
    arrives(tmp_path, "0.csv", 0)
    with rounds(
        lake,
        tmp_path,
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "aws"),
        AWS_ACCESS_KEY_ID=None,
        AWS_SECRET_ACCESS_KEY=None,
    ) as running:
        assert running.loaded() == 1
        for number, key in enumerate(keys[1:], 1):
            deleted.add(keys[number - 1].access_key_id)
            write_profile(tmp_path, key)
            arrives(tmp_path, f"{number}.csv", number)
            assert running.loaded() == 1
            assert len(running.failed) <= number, running.failed

    found = of_format.rows("t", "n")
    assert sorted(int(n) for (n,) in found) == [0, 1, 2]


def test_rotated_password_of_a_database_costs_one_round_at_most(
    lake: Lake, postgres: Postgres, tmp_path: Path
) -> None:
    name, user = postgres.new_database(), f"reader_{secrets.token_hex(4)}"
    seeded = lake.seeded
    assume = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": seeded.role_arn}
    read = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [assume, read]}
    lake.server.admin.put_user_policy(seeded.user, policy)
    vault = boto3.client(
        "secretsmanager",
        endpoint_url=lake.server.endpoint,
        region_name=seeded.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    secret, passwords = f"lakeload/{user}", [secrets.token_hex(8) for _ in range(3)]
    vault.create_secret(Name=secret, SecretString=passwords[0])
    source = {
        "type": "JDBC",
        "url": postgres.url(name),
        "user": user,
        "password": {"aws_secret": secret},
    }
    tables = [{"table": "public.t", "cursor": "n"}]
    lake.write_pipeline(tmp_path, tables=tables, source=source)
    with closing(postgres.connect(name)) as database:
        database.execute(
            f"CREATE ROLE {user} LOGIN PASSWORD '{passwords[0]}';"
            "CREATE TABLE t (n int PRIMARY KEY); INSERT INTO t VALUES (0);"
            f"GRANT SELECT ON t TO {user}".encode()
        )
        with rounds(lake, tmp_path, AWS_ENDPOINT_URL=lake.server.endpoint) as running:
            assert running.loaded() == 1
            for number, password in enumerate(passwords[1:], 1):
                database.execute(f"ALTER ROLE {user} PASSWORD '{password}'".encode())
                vault.put_secret_value(SecretId=secret, SecretString=password)
                database.execute("INSERT INTO t VALUES (%s)", (number,))
                assert running.loaded() == 1
                assert len(running.failed) <= number, running.failed
        database.execute(f"DROP OWNED BY {user}; DROP ROLE {user}".encode())

    found = LakeOfFormat(lake, None).rows("t", "n")
    assert sorted(n for (n,) in found) == [0, 1, 2]


def test_role_session_that_expires_is_renewed_without_a_failed_round(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    duration, life = 900, 6.0
    credentials = {
        "role_arn": lake.seeded.role_arn,
        "external_id": {"env": EXTERNAL_ID_VARIABLE},
        "session_duration": duration,
    }
    lake.write_pipeline(
        tmp_path,
        tables=[{"table": "t", "path": "landing"}],
        source=SOURCE,
        endpoint=fault_proxy.endpoint,
        destination={"credentials": credentials},
    )
    # A session of this duration is renewed a third of it before its end.
    tokens = ShortTokens(fault_proxy, seconds=life, told=duration // 3 + 2)
    (tmp_path / "landing").mkdir()
    with rounds(lake, tmp_path) as running:
        for number in range(4):
            arrives(tmp_path, f"{number}.csv", number)
            assert running.loaded() == 1
            for _ in range(4):
                running.next()

    assert (running.failed, tokens.refused) == ([], 0)
    # More than one of the command and one of the driver.
    assert tokens.issued > 4
    found = LakeOfFormat(lake, None).rows("t", "n")
    assert sorted(int(n) for (n,) in found) == [0, 1, 2, 3]
