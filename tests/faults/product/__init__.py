"""The whole product under faults: real syncs through the fault proxy, killed and disturbed, then
compared with an oracle that knows the log and the files only by boto3 and pyarrow.

`python -m tests.faults.product` runs the campaign."""
