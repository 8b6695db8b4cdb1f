"""The kinds of single values documents are made of. Each refuses with a sentence."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BeforeValidator, GetPydanticSchema, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from lakeload.config.model import Called, Finding, refusal, refusals
from lakeload.config.secret_names import has_userinfo, shown
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import RejectLimit
from lakeload_jobs.core.file_names import pattern_problems
from lakeload_jobs.core.layout import prefix_problem
from lakeload_jobs.core.sizes import parse_jvm_memory, parse_size

MIN_FILE_SIZE = 1 << 20
MAX_FILE_SIZE = 64 << 30
MIN_DRIVER_MEMORY = 512 << 20

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
REGION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]{1,576}", re.ASCII)
_PIPELINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def matching(pattern: re.Pattern[str], what: str, hint: str) -> AfterValidator:
    """Return what refuses text that does not match: it is not `what`."""

    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise refusal(f"`{shown(value)}` is not {what}", hint)
        return value

    return AfterValidator(check)


def _text(value: str) -> str:
    if not value.strip():
        raise refusal("the text is empty", "write a value or remove the line")
    if any(not char.isprintable() and char not in "\n\t" for char in value):
        raise refusal(f"`{shown(value)}` holds a control character", "remove it")
    return value


_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%")


def _record_limit(given: Any) -> Any:
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return RejectLimit(rows=given)
    share = _SHARE.fullmatch(given.strip()) if isinstance(given, str) else None
    if share is None or float(share[1]) > 100:
        raise refusal(
            "this is neither a number of records nor a share of them", "write `0.1 %`, or `100`"
        )
    return RejectLimit(percent=float(share[1]))


RecordLimit = Annotated[
    RejectLimit,
    Called("number, or share as `0.1 %`"),
    # Alone: a schema of the class would be in the JSON Schema, where nothing refers to it.
    GetPydanticSchema(lambda *_: core_schema.no_info_plain_validator_function(_record_limit)),
    WithJsonSchema({"type": ["string", "integer"]}),
]


def _bucket(value: str) -> str:
    if value.startswith(("s3://", "s3a://", "https://", "http://")):
        bare = value.split("://", 1)[1].split("/")[0]
        raise refusal(
            f"`bucket` takes the bucket's name, not `{shown(value)}`",
            f"write `bucket: {shown(bare)}`"
            + (", and `prefix` for the rest" if "/" in value else ""),
        )
    if value.startswith("arn:"):
        raise refusal("`bucket` takes the bucket's name, not an ARN")
    if bucket_problem(value):
        raise refusal(
            f"`{shown(value)}` is not a bucket name",
            "a bucket has 3 to 63 characters: lower-case letters, digits, `-` and `.`",
        )
    return value


def bucket_problem(value: str) -> bool:
    """Whether S3 would refuse a bucket of this name."""
    return not _BUCKET.fullmatch(value) or ".." in value or _is_address(value)


def _is_address(value: str) -> bool:
    try:
        ipaddress.IPv4Address(value)
    except ValueError:
        return False
    return True


def _prefix(value: str) -> str:
    if "://" in value:
        raise refusal(
            f"`prefix` takes the path below the bucket, not `{shown(value)}`",
            "leave out the scheme and the bucket",
        )
    prefix = value.removeprefix("/").removesuffix("/")
    if problem := prefix_problem(prefix):
        raise refusal(f"`{shown(value)}` cannot be a prefix: {problem}")
    return prefix


def check_url(value: str, secrets: str, hint: str, what: str = "a URL") -> SplitResult:
    """Return the parts of a URL with scheme and host; `secrets` says where those belong instead."""
    if has_userinfo(value):
        raise refusal(
            "the URL carries a user name or password; secrets must be references",
            f"remove the part before `@`; {secrets}",
            code="secret-literal",
        )
    try:
        parts = urlsplit(value)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        raise refusal(f"`{shown(value)}` is not a URL", hint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_valid:
        raise refusal(f"`{shown(value)}` is not {what}", hint)
    return parts


def _endpoint(value: str) -> str:
    if value == "":
        return value
    parts = check_url(value, "keys go under `credentials` as `{env: NAME}`", _ENDPOINT_HINT)
    if parts.path not in ("", "/") or parts.query or parts.fragment or re.search(r"\s", value):
        raise refusal(
            f"`{shown(value)}` has more than scheme, host and port",
            "buckets and paths are added by lakeload",
        )
    return value.rstrip("/")


_ENDPOINT_HINT = "write it as `https://s3.example.com` or `http://127.0.0.1:9000`"


def _glue_prefix(value: str) -> str:
    if "*" in value:
        raise refusal(
            f"`{shown(value)}` is used literally, and a name cannot contain `*`",
            f"write `{shown(value.replace('*', '').rstrip('_-'))}`; "
            "the `*` belongs in an IAM policy",
        )
    if any(not char.isprintable() for char in value):
        raise refusal(f"`{shown(value)}` holds a control character", "remove it")
    return value


def _file_name_pattern(value: str) -> str:
    if problems := pattern_problems(value):
        raise refusal(f"`{shown(value)}` cannot name files", "\n".join(problems))
    return value


def _size(example: str, least: int, most: float, limits: str) -> BeforeValidator:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise refusal("this is not a size", f"write it as `512MiB` or `{example}`")
        try:
            size = parse_size(value)
        except InvalidInput as error:
            raise refusal(f"`{shown(str(value))}` is not a size", error.hint) from None
        if not least <= size <= most:
            raise refusal(f"`{shown(str(value))}` is out of range", limits)
        return size

    return BeforeValidator(read)


def _driver_memory(value: str) -> str:
    try:
        size = parse_jvm_memory(value)
    except InvalidInput as error:
        raise refusal(f"`{shown(value)}` is not an amount of memory", error.hint) from None
    if size < MIN_DRIVER_MEMORY:
        raise refusal(f"`{shown(value)}` is too little for Spark", "give it at least `512m`")
    return value


@dataclass(frozen=True)
class TextValues:
    """Marks a mapping whose values are text: booleans and numbers may be written as such.

    `check` returns what is wrong with a name and its value, or None.
    """

    check: Callable[[str, str], Finding | None]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Read the mapping; pydantic calls it."""
        checked = core_schema.no_info_after_validator_function(self._checked, handler(source))
        return core_schema.no_info_before_validator_function(_as_text, checked)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        """Describe the mapping; pydantic calls it."""
        values = {"type": ["string", "boolean", "number"]}
        return {"type": "object", "additionalProperties": values}

    def _checked(self, given: dict[str, str]) -> dict[str, str]:
        found = [self.check(name, value) for name, value in given.items()]
        if findings := [finding for finding in found if finding is not None]:
            raise refusals(findings)
        return given


def _as_text(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    return {
        name: str(value).lower() if isinstance(value, bool | int | float) else value
        for name, value in given.items()
    }


Text = Annotated[str, AfterValidator(_text)]
Bucket = Annotated[str, AfterValidator(_bucket)]
Region = Annotated[str, matching(REGION, "a region", "write it as AWS does: `us-east-1`")]
Prefix = Annotated[str, AfterValidator(_prefix)]
Endpoint = Annotated[str, AfterValidator(_endpoint), Called("URL")]
RoleArn = Annotated[
    str,
    matching(_ROLE, "the ARN of a role", "copy it from IAM: `arn:aws:iam::123456789012:role/NAME`"),
]
GluePrefix = Annotated[str, AfterValidator(_glue_prefix)]
FileNamePattern = Annotated[str, AfterValidator(_file_name_pattern)]
PipelineName = Annotated[
    str,
    matching(
        _PIPELINE_NAME,
        "a pipeline name",
        "a name has at most 128 letters, digits, `.`, `_` and `-`, and begins with a letter or "
        "digit",
    ),
]
FileSize = Annotated[
    int,
    _size("1GiB", MIN_FILE_SIZE, MAX_FILE_SIZE, "a file has 1MiB to 64GiB"),
    Called("size"),
    WithJsonSchema({"type": ["string", "integer"]}),
]
ByteCount = Annotated[
    int,
    _size("10GiB", 1, math.inf, "write at least one byte"),
    Called("size"),
    WithJsonSchema({"type": ["string", "integer"]}),
]
DriverMemory = Annotated[str, AfterValidator(_driver_memory), Called("memory")]
