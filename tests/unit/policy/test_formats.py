"""Commands and Terraform carry the very documents that JSON does."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import hcl2
import pytest

from lakeload.policy.policy_set import notes
from lakeload.policy.principals import Principal
from lakeload.policy.render import shell, terraform
from lakeload.policy.templates import aligned, hcl
from lakeload_jobs.contract.secrets import SecretReference
from tests.unit.policy.shapes import EXTERNAL_ID, SHAPES

each_shape = pytest.mark.parametrize("name", SHAPES)

FAKE_AWS = """#!/bin/sh
case "$2" in
  get-caller-identity) echo 000011112222 ;;
  get-secret-value | get-parameter) echo "of-$2" ;;
  attach-*) printf '%s\\n' "$@" > "$CALLS/$(ls "$CALLS" | wc -l).arguments" ;;
  *) number=$(ls "$CALLS" | wc -l)
     printf '%s\\n' "$@" > "$CALLS/$number.arguments"
     cat > "$CALLS/$number.document" ;;
esac
"""


def run(script: str, folder: Path, **environment: str) -> list[tuple[list[str], Any]]:
    """Run a script with an `aws` that notes its arguments and what it reads."""
    tools, calls = folder / "bin", folder / "calls"
    tools.mkdir()
    calls.mkdir()
    (tools / "aws").write_text(FAKE_AWS)
    (tools / "aws").chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-u"],
        input=script,
        env={"PATH": path, "CALLS": str(calls), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    found = []
    for noted in sorted(calls.glob("*.arguments"), key=lambda one: int(one.stem)):
        document = noted.with_suffix(".document")
        read = json.loads(document.read_text()) if document.exists() else None
        found.append((noted.read_text().splitlines(), read))
    return found


@each_shape
def test_a_shell_sends_the_documents(name: str, tmp_path: Path) -> None:
    secret = tmp_path / "external id"
    secret.write_text("a secret\n")
    shape = SHAPES[name]
    found = shape.compose()
    text = shell(found, notes(found, shape.tables, form="cli"))
    text = text.replace(EXTERNAL_ID.reference.name, str(secret))
    calls = run(text, tmp_path, OPEN_CATALOG_ID="one", ROLE_NAME="reader")
    filled = {"<EXTERNAL_ID>": "a secret", "<OPEN_CATALOG_ID>": "one"}
    filled["<SNOWFLAKE_ID>"] = "of-get-secret-value"
    expected = json.dumps([document.as_json() for document in found.documents])
    for placeholder, value in filled.items():
        expected = expected.replace(placeholder, value)
    assert [read for _, read in calls if read is not None] == json.loads(expected)
    assert not any("a secret" in argument for arguments, _ in calls for argument in arguments)


def test_a_shell_makes_the_role_and_attaches_each_policy(tmp_path: Path) -> None:
    found = SHAPES["parquet-projection-china"].compose("trust")
    text = shell(found).replace(f"'{EXTERNAL_ID.reference.name}'", "/dev/null")
    ((arguments, _),) = run(text.replace(":?}", "-}"), tmp_path)
    assert arguments == [
        *("iam", "create-role", "--role-name", "loader", "--path", "/etl/"),
        *("--max-session-duration", "7200"),
        *("--assume-role-policy-document", "file:///dev/stdin"),
    ]


def test_unknown_account_is_a_shell_variable(tmp_path: Path) -> None:
    calls = run(shell(SHAPES["parquet-compatible-store"].compose()), tmp_path, ROLE_NAME="it's")
    assert calls[1][0] == [
        *("iam", "attach-role-policy", "--role-name", "it's"),
        *("--policy-arn", "arn:aws:iam::000011112222:policy/lakeload-my-data-lake-s3"),
    ]


def test_only_secrets_are_filled_in_by_the_shell(tmp_path: Path) -> None:
    shape = SHAPES["parquet-key-of-another-account"]
    wild = "$HOME `id` \\ ö"
    credentials = replace(shape.destination.credentials, session_tags={wild: "any"})
    changed = replace(shape, destination=replace(shape.destination, credentials=credentials))
    text = shell(changed.compose("trust")).replace(f"'{EXTERNAL_ID.reference.name}'", "/dev/null")
    ((_, document),) = run(text.replace(":?}", "-}"), tmp_path)
    tags = document["Statement"][1]["Condition"]["ForAllValues:StringEquals"]
    assert tags == {"aws:TagKeys": wild}


def test_unset_secret_stops_the_shell_command(tmp_path: Path) -> None:
    text = shell(SHAPES["iceberg-open-catalog"].compose("trust"))
    with pytest.raises(subprocess.CalledProcessError) as stopped:
        run(text, tmp_path)
    assert "OPEN_CATALOG_ID" in stopped.value.stderr


@cache
def read_terraform(text: str) -> dict[str, Any]:
    """Return a file as a parser of the language understands it, `jsonencode` left out."""
    bare = re.sub(r"jsonencode\(\{(.*?)^  \}\)", r"{\1  }", text, flags=re.DOTALL | re.MULTILINE)
    assert "jsonencode" not in bare
    parsed: dict[str, Any] = hcl2.loads(bare)
    return parsed


def plain(value: Any) -> Any:
    """Return a parsed value without quotes, escapes and the parser's own marks."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items() if key != "__is_block__"}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and value.startswith('"'):
        return json.loads(value).replace("$${", "${").replace("%%{", "%{")
    return value


@each_shape
def test_terraform_holds_the_documents(name: str) -> None:
    shape = SHAPES[name]
    found = shape.compose()
    parsed = read_terraform(terraform(found, notes(found, shape.tables, form="terraform")))
    read: dict[str, Any] = {}
    for resource in plain(parsed.get("resource", [])):
        for kind, named in resource.items():
            for label, body in named.items():
                policy = body.get("assume_role_policy", body.get("policy"))
                if policy is not None:
                    read["trust" if kind == "aws_iam_role" else label[9:]] = policy
    expected = json.dumps({one.name: one.as_json() for one in found.documents})
    for one in shape.asked.external_ids:
        expected = expected.replace(one.placeholder, f"${{var.{one.variable.lower()}}}")
    wanted = json.loads(expected)
    if "base" not in read and "base" in wanted:
        assert shape.asked.principals[0].account != "123456789012"
        del wanted["base"]
    assert read == wanted


@each_shape
def test_secrets_are_sensitive_variables(name: str) -> None:
    shape = SHAPES[name]
    parsed = read_terraform(terraform(shape.compose()))
    variables = {
        label: body for one in plain(parsed.get("variable", [])) for label, body in one.items()
    }
    for one in shape.asked.external_ids:
        assert variables[one.variable.lower()]["sensitive"] is True


def test_text_that_looks_like_a_template_stays_text() -> None:
    text = '${*} %{if} "quoted" \\ ü'
    body = {"a": text, "d": {"b:c": [text]}, "longer": True}
    (found,) = plain(hcl2.loads(f"locals {hcl(body)}\n")["locals"])
    assert found == body


def test_equals_signs_of_neighbours_align() -> None:
    assert aligned("locals " + hcl({"a": "1", "long": "2", "c": {"d": "3"}, "e": "4"})) == (
        'locals {\n  a    = "1"\n  long = "2"\n  c = {\n    d = "3"\n  }\n  e = "4"\n}'
    )


def test_text_that_looks_like_an_attribute_is_not_aligned() -> None:
    text = "locals " + hcl({"a": ["x = 1", "long"], "longer": "y = 2", "b": "z"}) + "\n"
    assert aligned(text) == (
        'locals {\n  a = [\n    "x = 1",\n    "long",\n  ]\n  longer = "y = 2"\n  b      = "z"\n}\n'
    )


def test_revealed_value_is_in_every_format() -> None:
    shape = SHAPES["parquet"]
    asked = replace(
        shape.asked,
        principals=(Principal("arn:aws:iam::111122223333:user/loader", "a$b`c"),),
        external_ids=(),
    )
    found = replace(shape, asked=asked).compose("trust")
    assert '"sts:ExternalId": "a$b`c"' in shell(found)
    assert "<<'POLICY'" in shell(found)
    assert '"sts:ExternalId" = "a$b`c"' in terraform(found)


def test_a_reference_is_quoted_for_the_shell() -> None:
    shape = SHAPES["parquet"]
    wild = replace(EXTERNAL_ID, reference=SecretReference("env", "IT'S; rm"))
    asked = replace(shape.asked, external_ids=(wild,))
    assert "printenv 'IT'\"'\"'S; rm'" in shell(replace(shape, asked=asked).compose("trust"))
