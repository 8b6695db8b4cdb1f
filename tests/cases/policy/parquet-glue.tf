# An ExternalId is a secret and not shown: set the variable `external_id` to
# {file: /run/secrets/external id}; Terraform's state will hold the value.
# `--reveal-external-id` writes the value into the document.

variable "external_id" {
  description = "The ExternalId behind {file: /run/secrets/external id}"
  type        = string
  sensitive   = true
}

# AssumeRole: arn:aws:iam::111122223333:user/loader may assume the role, with a
# request that carries the ExternalId.
resource "aws_iam_role" "lakeload" {
  name = "SupaflowS3Role"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "AssumeRole"
        Effect = "Allow"
        Principal = {
          AWS = "arn:aws:iam::111122223333:user/loader"
        }
        Action = "sts:AssumeRole"
        Condition = {
          StringEquals = {
            "sts:ExternalId" = var.external_id
          }
        }
      },
    ]
  })
}

# ListObjects: objects below the prefix are found.
# ListUploads: uploads of abandoned attempts are found; without a condition, as
# the action has no key s3:prefix.
# WriteObjects: files, metadata and the job history are read and written, and an
# upload can be given up.
# RemoveProbeObjects: `test-connection` removes its own objects; no data and no
# log can be deleted.
resource "aws_iam_policy" "lakeload_s3" {
  name = "SupaflowS3Role-s3"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "ListObjects"
        Effect   = "Allow"
        Action   = "s3:ListBucket"
        Resource = "arn:aws:s3:::my-data-lake"
        Condition = {
          StringLike = {
            "s3:prefix" = "data-lake/production/*"
          }
        }
      },
      {
        Sid      = "ListUploads"
        Effect   = "Allow"
        Action   = "s3:ListBucketMultipartUploads"
        Resource = "arn:aws:s3:::my-data-lake"
      },
      {
        Sid    = "WriteObjects"
        Effect = "Allow"
        Action = [
          "s3:GetObject",
          "s3:PutObject",
          "s3:AbortMultipartUpload",
        ]
        Resource = "arn:aws:s3:::my-data-lake/data-lake/production/*"
      },
      {
        Sid      = "RemoveProbeObjects"
        Effect   = "Allow"
        Action   = "s3:DeleteObject"
        Resource = "arn:aws:s3:::my-data-lake/data-lake/production/_lakeload/probe/*"
      },
    ]
  })
}

resource "aws_iam_role_policy_attachment" "lakeload_s3" {
  role       = aws_iam_role.lakeload.name
  policy_arn = aws_iam_policy.lakeload_s3.arn
}

# Databases: the database of a schema is looked up, and made when it is missing.
# Tables: tables are made, follow added columns, and get their partitions.
# RemoveProbeTable: `test-connection` removes the table it makes; no other can
# be deleted.
# RemoveProbeDatabase: `test-connection` removes the database it makes; Glue
# checks all that may be in one.
resource "aws_iam_policy" "lakeload_glue" {
  name = "SupaflowS3Role-glue"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Databases"
        Effect = "Allow"
        Action = [
          "glue:GetDatabase",
          "glue:CreateDatabase",
        ]
        Resource = [
          "arn:aws:glue:us-east-1:123456789012:catalog",
          "arn:aws:glue:us-east-1:123456789012:database/supaflow*",
        ]
      },
      {
        Sid    = "Tables"
        Effect = "Allow"
        Action = [
          "glue:GetTable",
          "glue:CreateTable",
          "glue:UpdateTable",
          "glue:GetPartition",
          "glue:BatchCreatePartition",
          "glue:BatchUpdatePartition",
        ]
        Resource = [
          "arn:aws:glue:us-east-1:123456789012:catalog",
          "arn:aws:glue:us-east-1:123456789012:database/supaflow*",
          "arn:aws:glue:us-east-1:123456789012:table/supaflow*/*",
        ]
      },
      {
        Sid    = "RemoveProbeTable"
        Effect = "Allow"
        Action = "glue:DeleteTable"
        Resource = [
          "arn:aws:glue:us-east-1:123456789012:catalog",
          "arn:aws:glue:us-east-1:123456789012:database/supaflow_lakeload_probe_*",
          "arn:aws:glue:us-east-1:123456789012:table/supaflow_lakeload_probe_*/*",
        ]
      },
      {
        Sid    = "RemoveProbeDatabase"
        Effect = "Allow"
        Action = "glue:DeleteDatabase"
        Resource = [
          "arn:aws:glue:us-east-1:123456789012:catalog",
          "arn:aws:glue:us-east-1:123456789012:database/supaflow_lakeload_probe_*",
          "arn:aws:glue:us-east-1:123456789012:table/supaflow_lakeload_probe_*/*",
          "arn:aws:glue:us-east-1:123456789012:userDefinedFunction/supaflow_lakeload_probe_*/*",
        ]
      },
    ]
  })
}

resource "aws_iam_role_policy_attachment" "lakeload_glue" {
  role       = aws_iam_role.lakeload.name
  policy_arn = aws_iam_policy.lakeload_glue.arn
}

# For account 111122223333, whose identity assumes the role: `lakeload policy
# FILE --only base` writes the policy that it needs there.
