"""Facts about table formats and catalogs: one entry for each, in one place.

Facts only. What a format or a catalog does is in its own package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.spec import (
    AccessDelegation,
    CatalogSpec,
    CatalogType,
    DestinationSpec,
    Mode,
    Nested,
    SchemaChanges,
    TableFormat,
)


@dataclass(frozen=True)
class FormatTraits:
    """What holds for every table of a format, whatever its settings say."""

    name: TableFormat
    tables: str
    """What its tables are called in sentences, in the plural."""
    modes: tuple[Mode, ...]
    nested: Nested
    """How structs, arrays and maps are written unless the pipeline says so."""
    schema_changes: SchemaChanges
    """What becomes of changed columns unless the pipeline says so."""
    commit_unknown: str
    """What is said of a commit whose end nobody saw, and what settles it."""
    cut_off: str
    """What ends a commit that was cut off; `{job_id}` stands for the job's."""
    jar_sets: tuple[str, ...] = ()
    """The sets of jars that Spark needs beyond those of the source."""
    session_settings: Mapping[str, str] = field(default_factory=dict)
    """What a Spark session must have from its start."""
    maintenance_steps: tuple[Step, ...] = ()
    """In the order they are taken: what is replaced first is what can be removed afterwards."""
    steps_with_jars: frozenset[Step] = frozenset()
    """Those that Spark's actions take, with the jars of the format."""
    has_catalog: bool = False
    """Tables are those of the catalog in the destination, which also takes the commits."""
    split_modes: tuple[Mode, ...] = ()
    """The modes in which its tasks write rows that a source reads there, without Spark."""
    commits_in_store: bool = False
    """Commits are objects: they rest on the store's conditional writes."""
    lists_uploads: bool = False
    """A load finds the uploads that others have left open."""
    plan_reads_columns: bool = False
    """`plan` looks at the columns unless it is told not to."""
    tracks_dead_attempts: bool = False
    """A load is told which attempts of this machine have ended without a result."""

    @property
    def append_only(self) -> bool:
        """Whether no mode takes rows away."""
        return self.modes == ("APPEND",)


FORMATS: Mapping[TableFormat, FormatTraits] = {
    "PARQUET": FormatTraits(
        name="PARQUET",
        tables="tables of Parquet files",
        modes=("APPEND",),
        nested="NATIVE",
        schema_changes="ADD_COLUMNS",
        commit_unknown="commit state unknown: the next sync or `lakeload recover` finishes it",
        cut_off="the next sync or `recover` finishes it",
        maintenance_steps=("uploads",),
        split_modes=("APPEND",),
        commits_in_store=True,
        lists_uploads=True,
    ),
    "ICEBERG": FormatTraits(
        name="ICEBERG",
        tables="Iceberg tables",
        modes=("APPEND", "OVERWRITE", "UPSERT"),
        nested="JSON",
        schema_changes="EVOLVE",
        # Its commit happened or did not, and leaves nothing to be finished.
        commit_unknown=(
            "commit state unknown: a rerun with the same `--job-id` loads it only if it is "
            "not committed"
        ),
        cut_off=(
            "it is in, or it is not; run again with `--job-id {job_id}`, which loads it only if "
            "it is not"
        ),
        jar_sets=("iceberg",),
        # MERGE, branches and procedures. Spark reads the setting once, at its start.
        session_settings={
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            )
        },
        maintenance_steps=(
            "branches",
            "uploads",
            "compact",
            "deletes",
            "manifests",
            "expire",
            "orphans",
        ),
        steps_with_jars=frozenset({"compact", "deletes", "manifests", "orphans"}),
        split_modes=("APPEND", "OVERWRITE"),
        lists_uploads=True,
        has_catalog=True,
        plan_reads_columns=True,
        tracks_dead_attempts=True,
    ),
}


class Interface(Enum):
    """How a catalog is spoken to."""

    GLUE = "GLUE"
    REST = "REST"
    """Iceberg's REST protocol."""
    NESSIE = "NESSIE"
    """Nessie's own, for which Spark alone has a client."""


class Compares(Enum):
    """What a catalog compares a commit with before it takes it."""

    TABLE = "TABLE"
    """The whole metadata: any commit that came in between refuses ours."""
    REFERENCES = "REFERENCES"
    """The branches that the commit sets, and nothing else (Iceberg's REST protocol): removing a
    branch, or setting a property, is compared with nothing."""
    NOTHING = "NOTHING"
    """Tables have no branches there, and a commit to one goes to `main`."""


@dataclass(frozen=True)
class CatalogTraits:
    """What holds for every catalog of a type, spoken to as it is."""

    type: CatalogType
    interface: Interface
    compares: Compares
    in_glue: bool = False
    """Its tables are those of AWS Glue, and Glue's rules for names hold."""
    lower_case_names: bool = False
    """Columns are in lower case, as Glue keeps them."""
    located: bool = False
    """The destination says where tables lie; other catalogs decide that themselves."""
    may_vend: bool = False
    """It gives out credentials for the files of a table to those who ask for them."""
    keeps_history: bool = False
    """Its branches, tags and earlier commits name older metadata files: those stay."""
    named_by_location: bool = False
    """Its REST interface knows a warehouse by its location, not by a name."""
    branched: bool = False
    """The catalog itself has branches, one of which `ref` names."""
    polaris: bool = False
    """It is certainly Polaris: privileges and principal roles are called as there."""

    @property
    def spark_only(self) -> bool:
        """Whether only Spark has a client for it."""
        return self.interface is Interface.NESSIE


CATALOGS: Mapping[CatalogType, CatalogTraits] = {
    "GLUE": CatalogTraits(
        type="GLUE",
        interface=Interface.GLUE,
        compares=Compares.TABLE,
        in_glue=True,
        lower_case_names=True,
        located=True,
    ),
    "REST": CatalogTraits(
        type="REST", interface=Interface.REST, compares=Compares.REFERENCES, may_vend=True
    ),
    "NESSIE": CatalogTraits(
        type="NESSIE",
        interface=Interface.NESSIE,
        compares=Compares.TABLE,
        located=True,
        keeps_history=True,
        named_by_location=True,
        branched=True,
    ),
    "SNOWFLAKE_OPEN_CATALOG": CatalogTraits(
        type="SNOWFLAKE_OPEN_CATALOG",
        interface=Interface.REST,
        compares=Compares.REFERENCES,
        may_vend=True,
        polaris=True,
    ),
}

_SECOND_INTERFACES: Mapping[tuple[CatalogType, str], CatalogTraits] = {
    ("NESSIE", "REST"): replace(
        CATALOGS["NESSIE"], interface=Interface.REST, compares=Compares.NOTHING
    )
}
"""By type and `api`: what a catalog is like through the interface that is not its own."""


class _Catalog(Protocol):
    """A catalog in the contract, or in the destination document."""

    @property
    def type(self) -> CatalogType: ...
    @property
    def api(self) -> str: ...
    @property
    def access_delegation(self) -> AccessDelegation: ...
    @property
    def sigv4(self) -> object | None: ...


def format_of(destination: DestinationSpec) -> FormatTraits:
    """Return what the format of a destination is like."""
    return FORMATS[destination.table_format]


def catalog_of(destination: DestinationSpec) -> CatalogSpec | None:
    """Return the catalog that the tables of a destination are in; None without one.

    `destination.iceberg` is there whatever the format is: this tells whether it counts.
    """
    return destination.iceberg.catalog if format_of(destination).has_catalog else None


def catalog_traits(catalog: _Catalog) -> CatalogTraits:
    """Return what a catalog is like, spoken to as its settings say."""
    return _SECOND_INTERFACES.get((catalog.type, catalog.api), CATALOGS[catalog.type])


def vends(catalog: _Catalog) -> bool:
    """Whether the catalog is asked for the credentials that files are written with.

    Nessie and Glue are not: their tables lie where the destination says, so the destination's own
    credentials write them.
    """
    return catalog_traits(catalog).may_vend and catalog.access_delegation == "VENDED_CREDENTIALS"


def needs_aws_identity(catalog: _Catalog) -> bool:
    """Whether whoever loads or reads needs an identity of AWS: for the files, or to sign requests.

    Not the opposite of `vends`: AWS's own catalogs vend to the identity that signs, and what that
    one may do in S3 is in its own policies.
    """
    return not vends(catalog) or catalog.sigv4 is not None
