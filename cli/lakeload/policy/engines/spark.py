"""What Spark needs to read the Iceberg tables of a destination. Pure.

https://iceberg.apache.org/docs/latest/spark-configuration/, …/aws/ and …/nessie/. Iceberg's REST
client takes a property's value from the environment where it is written `env:NAME`.
"""

from __future__ import annotations

from lakeload.policy.engines.iceberg_words import LAKE
from lakeload.policy.engines.lake_files import aws_identity, login_variables, needs_aws, path_style
from lakeload.policy.text.secret_variables import catalog_variables, credential, headers, token
from lakeload.policy.text.snippets import Snippet, properties_text
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.formats.iceberg.rules.catalog_uris import (
    nessie_api_uri,
    rest_uri,
    rest_warehouse,
    token_uri,
    warehouse_location,
)

FILE = "lake.conf"
PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
)
"""For Spark 4.1; those that loads use (`machine/jars.toml`)."""


def spark_access(destination: DestinationSpec) -> Snippet:
    """Return the properties file of a Spark session that reads the catalog as `lake`."""
    catalog = destination.iceberg.catalog
    own = f"spark.sql.catalog.{LAKE}"
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    found = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": extensions,
        own: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{own}.{key}": value for key, value in _catalog(destination).items()},
    }
    variables = catalog_variables(catalog, destination.region)
    filled = tuple(one.reading for one in variables if one.reading and _from_environment(catalog))
    return Snippet(
        f"{FILE}: Spark's properties",
        properties_text(found),
        _why(destination, [one.name for one in variables]),
        "properties",
        (*filled, f"spark-sql --properties-file {FILE}"),
    )


def _catalog(destination: DestinationSpec) -> dict[str, str]:
    catalog = destination.iceberg.catalog
    files = _files(destination)
    if catalog.type == "GLUE":
        found = {"type": "glue", "warehouse": warehouse_location(destination)}
        if catalog.glue_id:
            found["glue.id"] = catalog.glue_id
        if destination.endpoints.glue:
            found["glue.endpoint"] = destination.endpoints.glue
        return {**found, **files}
    if catalog.type == "NESSIE" and catalog.api == "NATIVE":
        found = {
            "type": "nessie",
            "uri": nessie_api_uri(catalog.uri or ""),
            "client-api-version": "2",
            "ref": catalog.ref,
            "warehouse": warehouse_location(destination),
        }
        if catalog.token is not None:
            found |= {"authentication.type": "BEARER", "authentication.token": "<TOKEN>"}
        return {**found, **files}
    return {"type": "rest", "uri": rest_uri(catalog), **_rest(destination), **files}


def _rest(destination: DestinationSpec) -> dict[str, str]:
    catalog, region = destination.iceberg.catalog, destination.region
    found: dict[str, str] = {}
    if asked := rest_warehouse(destination):
        found["warehouse"] = asked
    if catalog.sigv4 is not None:
        found["rest.auth.type"] = "sigv4"
        found["rest.signing-name"] = catalog.sigv4.signing_name
        found["rest.signing-region"] = catalog.sigv4.region or region
    elif client := credential(catalog, region):
        found["rest.auth.type"] = "oauth2"
        found["credential"] = f"env:{client.name}"
        found["oauth2-server-uri"] = token_uri(catalog)
        if catalog.scope:
            found["scope"] = catalog.scope
    elif bearer := token(catalog, region):
        found["rest.auth.type"] = "oauth2"
        found["token"] = f"env:{bearer.name}"
        found["oauth2-server-uri"] = token_uri(catalog)
    for header, variable in headers(catalog, region).items():
        found[f"header.{header}"] = f"env:{variable.name}"
    if vends(catalog):
        found["header.X-Iceberg-Access-Delegation"] = "vended-credentials"
    return found


def _files(destination: DestinationSpec) -> dict[str, str]:
    """Return how data files are reached; where the catalog lends keys, it says the rest itself."""
    found = {"client.region": destination.region}
    if vends(destination.iceberg.catalog):
        return found
    found["io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
    if destination.endpoints.s3:
        found["s3.endpoint"] = destination.endpoints.s3
        found["s3.path-style-access"] = "true" if path_style(destination) else "false"
    return found


def _from_environment(catalog: CatalogSpec) -> bool:
    """Nessie's own client knows no `env:`."""
    return not (catalog.type == "NESSIE" and catalog.api == "NATIVE")


def _why(destination: DestinationSpec, variables: list[str]) -> str:
    catalog = destination.iceberg.catalog
    told = [
        f"For Spark 4.1, as a file of this name: no secret is in it. Tables are `{LAKE}.SCHEMA."
        "TABLE`."
    ]
    if not _from_environment(catalog) and catalog.token is not None:
        told[0] = (
            f"For Spark 4.1, as a file of this name. Tables are `{LAKE}.SCHEMA.TABLE`. Replace "
            f"<TOKEN> by the value of {catalog.token} and let nobody else read the file: "
            f"`chmod 600 {FILE}`."
        )
    else:
        told += login_variables(variables, "Iceberg reads {} from the environment.")
    if needs_aws(destination):
        told.append(aws_identity("of the environment (AWS_PROFILE, AWS_ACCESS_KEY_ID, …)"))
    return "\n".join(told)
