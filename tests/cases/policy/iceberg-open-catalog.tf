# The catalog vends credentials, so the role is the one in the catalog's storage
# settings, and its principals are the catalog's and, for Snowflake's queries,
# Snowflake's compute: both have an ExternalId of their own.

# An ExternalId is a secret and not shown: set the variable `open_catalog_id` to
# {env: OPEN_CATALOG_ID} and the variable `snowflake_id` to {aws_secret:
# snowflake}; Terraform's state will hold the value. `--reveal-external-id`
# writes the value into the document.

variable "open_catalog_id" {
  description = "The ExternalId behind {env: OPEN_CATALOG_ID}"
  type        = string
  sensitive   = true
}

variable "snowflake_id" {
  description = "The ExternalId behind {aws_secret: snowflake}"
  type        = string
  sensitive   = true
}

# AssumeRole: arn:aws:iam::444455556666:user/open-catalog may assume the role,
# with a request that carries the ExternalId.
# AssumeRole2: arn:aws:iam::777788889999:user/compute may assume the role, with
# a request that carries the ExternalId.
resource "aws_iam_role" "lakeload" {
  name = "SupaflowS3Role"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "AssumeRole"
        Effect = "Allow"
        Principal = {
          AWS = "arn:aws:iam::444455556666:user/open-catalog"
        }
        Action = "sts:AssumeRole"
        Condition = {
          StringEquals = {
            "sts:ExternalId" = var.open_catalog_id
          }
        }
      },
      {
        Sid    = "AssumeRole2"
        Effect = "Allow"
        Principal = {
          AWS = "arn:aws:iam::777788889999:user/compute"
        }
        Action = "sts:AssumeRole"
        Condition = {
          StringEquals = {
            "sts:ExternalId" = var.snowflake_id
          }
        }
      },
    ]
  })
}

# ListObjects: objects below the prefix are found.
# FindBucket: the catalog reads the bucket's region; the action has no key
# s3:prefix.
# ManageObjects: the catalog passes these on, for one table at a time, to its
# readers and writers.
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
            "s3:prefix" = "lake/*"
          }
        }
      },
      {
        Sid      = "FindBucket"
        Effect   = "Allow"
        Action   = "s3:GetBucketLocation"
        Resource = "arn:aws:s3:::my-data-lake"
      },
      {
        Sid    = "ManageObjects"
        Effect = "Allow"
        Action = [
          "s3:GetObject",
          "s3:GetObjectVersion",
          "s3:PutObject",
          "s3:DeleteObject",
          "s3:DeleteObjectVersion",
        ]
        Resource = "arn:aws:s3:::my-data-lake/lake/*"
      },
    ]
  })
}

resource "aws_iam_role_policy_attachment" "lakeload_s3" {
  role       = aws_iam_role.lakeload.name
  policy_arn = aws_iam_policy.lakeload_s3.arn
}
