# An ExternalId is a secret and not shown: the commands read {file:
# /run/secrets/external id} when they run. `--reveal-external-id` writes the
# value into the document.

EXTERNAL_ID=$(cat '/run/secrets/external id')

# AssumeRole: arn:aws:iam::111122223333:user/loader may assume the role, with a
# request that carries the ExternalId.
aws iam create-role \
  --role-name SupaflowS3Role \
  --assume-role-policy-document file:///dev/stdin <<POLICY
{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "AssumeRole",
      "Effect": "Allow",
      "Principal": {
        "AWS": "arn:aws:iam::111122223333:user/loader"
      },
      "Action": "sts:AssumeRole",
      "Condition": {
        "StringEquals": {
          "sts:ExternalId": "${EXTERNAL_ID:?}"
        }
      }
    }
  ]
}
POLICY

# ListObjects: objects below the prefix are found.
# ListUploads: uploads of abandoned attempts are found; without a condition, as
# the action has no key s3:prefix.
# WriteObjects: files, metadata and the job history are read and written, and an
# upload can be given up.
# RemoveProbeObjects: `test-connection` removes its own objects; no data and no
# log can be deleted.
aws iam create-policy \
  --policy-name SupaflowS3Role-s3 \
  --policy-document file:///dev/stdin <<'POLICY'
{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "ListObjects",
      "Effect": "Allow",
      "Action": "s3:ListBucket",
      "Resource": "arn:aws:s3:::my-data-lake",
      "Condition": {
        "StringLike": {
          "s3:prefix": "data-lake/production/*"
        }
      }
    },
    {
      "Sid": "ListUploads",
      "Effect": "Allow",
      "Action": "s3:ListBucketMultipartUploads",
      "Resource": "arn:aws:s3:::my-data-lake"
    },
    {
      "Sid": "WriteObjects",
      "Effect": "Allow",
      "Action": [
        "s3:GetObject",
        "s3:PutObject",
        "s3:AbortMultipartUpload"
      ],
      "Resource": "arn:aws:s3:::my-data-lake/data-lake/production/*"
    },
    {
      "Sid": "RemoveProbeObjects",
      "Effect": "Allow",
      "Action": "s3:DeleteObject",
      "Resource": "arn:aws:s3:::my-data-lake/data-lake/production/_lakeload/probe/*"
    }
  ]
}
POLICY
aws iam attach-role-policy \
  --role-name SupaflowS3Role \
  --policy-arn arn:aws:iam::123456789012:policy/SupaflowS3Role-s3

# Databases: the database of a schema is looked up, and made when it is missing.
# Tables: tables are made, follow added columns, and get their partitions.
# RemoveProbeTable: `test-connection` removes the table it makes; no other can
# be deleted.
# RemoveProbeDatabase: `test-connection` removes the database it makes; Glue
# checks all that may be in one.
aws iam create-policy \
  --policy-name SupaflowS3Role-glue \
  --policy-document file:///dev/stdin <<'POLICY'
{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "Databases",
      "Effect": "Allow",
      "Action": [
        "glue:GetDatabase",
        "glue:CreateDatabase"
      ],
      "Resource": [
        "arn:aws:glue:us-east-1:123456789012:catalog",
        "arn:aws:glue:us-east-1:123456789012:database/supaflow*"
      ]
    },
    {
      "Sid": "Tables",
      "Effect": "Allow",
      "Action": [
        "glue:GetTable",
        "glue:CreateTable",
        "glue:UpdateTable",
        "glue:GetPartition",
        "glue:BatchCreatePartition",
        "glue:BatchUpdatePartition"
      ],
      "Resource": [
        "arn:aws:glue:us-east-1:123456789012:catalog",
        "arn:aws:glue:us-east-1:123456789012:database/supaflow*",
        "arn:aws:glue:us-east-1:123456789012:table/supaflow*/*"
      ]
    },
    {
      "Sid": "RemoveProbeTable",
      "Effect": "Allow",
      "Action": "glue:DeleteTable",
      "Resource": [
        "arn:aws:glue:us-east-1:123456789012:catalog",
        "arn:aws:glue:us-east-1:123456789012:database/supaflow_lakeload_probe_*",
        "arn:aws:glue:us-east-1:123456789012:table/supaflow_lakeload_probe_*/*"
      ]
    },
    {
      "Sid": "RemoveProbeDatabase",
      "Effect": "Allow",
      "Action": "glue:DeleteDatabase",
      "Resource": [
        "arn:aws:glue:us-east-1:123456789012:catalog",
        "arn:aws:glue:us-east-1:123456789012:database/supaflow_lakeload_probe_*",
        "arn:aws:glue:us-east-1:123456789012:table/supaflow_lakeload_probe_*/*",
        "arn:aws:glue:us-east-1:123456789012:userDefinedFunction/supaflow_lakeload_probe_*/*"
      ]
    }
  ]
}
POLICY
aws iam attach-role-policy \
  --role-name SupaflowS3Role \
  --policy-arn arn:aws:iam::123456789012:policy/SupaflowS3Role-glue

# AssumeRole: the base identity becomes the role; the role's trust policy has to
# allow it too.
# To be run in account 111122223333.
aws iam put-user-policy \
  --user-name loader \
  --policy-name SupaflowS3Role-base \
  --policy-document file:///dev/stdin <<'POLICY'
{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "AssumeRole",
      "Effect": "Allow",
      "Action": "sts:AssumeRole",
      "Resource": "arn:aws:iam::123456789012:role/SupaflowS3Role"
    }
  ]
}
POLICY
