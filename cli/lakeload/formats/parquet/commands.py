"""What the command line does with tables of Parquet files."""

from lakeload.formats.parquet.inspect import inspect
from lakeload.formats.parquet.maintain import maintain
from lakeload.formats.parquet.plan import judge, plan
from lakeload.formats.parquet.recover import recover
from lakeload.formats.parquet.reset import reset
from lakeload.formats.parquet.runs import runs
from lakeload.formats.parquet.void_accept import resolve

__all__ = ["inspect", "judge", "maintain", "plan", "recover", "reset", "resolve", "runs"]
