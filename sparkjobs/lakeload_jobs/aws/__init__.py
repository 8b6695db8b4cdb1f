"""AWS: identities, clients and errors. The only package that imports boto3 and botocore.

It is heavy to import (boto3), so commands import it when they run, not when they load.
"""

from lakeload_jobs.aws.credentials import RefreshWindow
from lakeload_jobs.aws.errors import AwsError, aws_call
from lakeload_jobs.aws.session import AwsSession

__all__ = ["AwsError", "AwsSession", "RefreshWindow", "aws_call"]
