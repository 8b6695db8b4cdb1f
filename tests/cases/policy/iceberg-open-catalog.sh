# The catalog vends credentials, so the role is the one in the catalog's storage
# settings, and its principals are the catalog's and, for Snowflake's queries,
# Snowflake's compute: both have an ExternalId of their own.

# An ExternalId is a secret and not shown: the commands read {env:
# OPEN_CATALOG_ID} and {aws_secret: snowflake} when they run.
# `--reveal-external-id` writes the value into the document.

SNOWFLAKE_ID=$(aws secretsmanager get-secret-value --region eu-west-1 \
  --secret-id snowflake --query SecretString --output text)

# AssumeRole: arn:aws:iam::444455556666:user/open-catalog may assume the role,
# with a request that carries the ExternalId.
# AssumeRole2: arn:aws:iam::777788889999:user/compute may assume the role, with
# a request that carries the ExternalId.
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
        "AWS": "arn:aws:iam::444455556666:user/open-catalog"
      },
      "Action": "sts:AssumeRole",
      "Condition": {
        "StringEquals": {
          "sts:ExternalId": "${OPEN_CATALOG_ID:?}"
        }
      }
    },
    {
      "Sid": "AssumeRole2",
      "Effect": "Allow",
      "Principal": {
        "AWS": "arn:aws:iam::777788889999:user/compute"
      },
      "Action": "sts:AssumeRole",
      "Condition": {
        "StringEquals": {
          "sts:ExternalId": "${SNOWFLAKE_ID:?}"
        }
      }
    }
  ]
}
POLICY

# ListObjects: objects below the prefix are found.
# FindBucket: the catalog reads the bucket's region; the action has no key
# s3:prefix.
# ManageObjects: the catalog passes these on, for one table at a time, to its
# readers and writers.
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
          "s3:prefix": "lake/*"
        }
      }
    },
    {
      "Sid": "FindBucket",
      "Effect": "Allow",
      "Action": "s3:GetBucketLocation",
      "Resource": "arn:aws:s3:::my-data-lake"
    },
    {
      "Sid": "ManageObjects",
      "Effect": "Allow",
      "Action": [
        "s3:GetObject",
        "s3:GetObjectVersion",
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:DeleteObjectVersion"
      ],
      "Resource": "arn:aws:s3:::my-data-lake/lake/*"
    }
  ]
}
POLICY
aws iam attach-role-policy \
  --role-name SupaflowS3Role \
  --policy-arn arn:aws:iam::123456789012:policy/SupaflowS3Role-s3
