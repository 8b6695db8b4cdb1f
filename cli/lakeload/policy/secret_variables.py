"""Secrets of a catalog as variables of the environment, for engines that read them from there.

No value is written: where a variable has to be filled first, there is a line for the shell, which
keeps the value out of the arguments of every process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from shlex import quote

from lakeload.policy.templates import words
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CatalogSpec

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class SecretVariable:
    """A variable of the environment, and the line of a shell that fills it."""

    name: str
    reading: str = ""
    """'' where the destination names the variable itself."""


def reading_command(reference: SecretReference, region: str) -> str:
    """Return the command that prints a secret; with AWS's those of `region`."""
    name, text = quote(reference.name), " --output text"
    return {
        "env": f"printenv {name}",
        "file": f"cat {name}",
        "aws_secret": f"aws secretsmanager get-secret-value --region {region} \\\n"
        f"  --secret-id {name} --query SecretString{text}",
        "aws_parameter": f"aws ssm get-parameter --region {region} --with-decryption \\\n"
        f"  --name {name} --query Parameter.Value{text}",
    }[reference.kind]


def own_variable(reference: SecretReference) -> bool:
    """Tell whether the secret is in a variable that every shell and engine can name."""
    return reference.kind == "env" and _VARIABLE.fullmatch(reference.name) is not None


def credential(catalog: CatalogSpec, region: str) -> SecretVariable | None:
    """Return the variable that holds `CLIENT_ID:CLIENT_SECRET`; None without an OAuth2 client."""
    if catalog.credential is not None:
        return _one("LAKE_CREDENTIAL", catalog.credential, region)
    if catalog.client_id is None or catalog.client_secret is None:
        return None
    halves = ":".join(_value(one, region) for one in (catalog.client_id, catalog.client_secret))
    return SecretVariable("LAKE_CREDENTIAL", f'export LAKE_CREDENTIAL="{halves}"')


def token(catalog: CatalogSpec, region: str) -> SecretVariable | None:
    """Return the variable that holds the bearer token; None without one."""
    return _one("LAKE_TOKEN", catalog.token, region) if catalog.token is not None else None


def headers(catalog: CatalogSpec, region: str) -> dict[str, SecretVariable]:
    """Return the variable of each further header, by the header's name."""
    return {
        header: _one(f"LAKE_HEADER_{words(header).upper()}", reference, region)
        for header, reference in (catalog.headers or {}).items()
    }


def catalog_variables(catalog: CatalogSpec, region: str) -> tuple[SecretVariable, ...]:
    """Return every variable that the catalog's secrets are read from."""
    login = credential(catalog, region) or token(catalog, region)
    return (*((login,) if login else ()), *headers(catalog, region).values())


def _one(name: str, reference: SecretReference, region: str) -> SecretVariable:
    if own_variable(reference):
        return SecretVariable(reference.name)
    return SecretVariable(name, f'export {name}="{_value(reference, region)}"')


def _value(reference: SecretReference, region: str) -> str:
    """Return what stands for the secret between double quotes of a shell."""
    if own_variable(reference):
        return f"${{{reference.name}:?}}"
    return f"$({reading_command(reference, region)})"
