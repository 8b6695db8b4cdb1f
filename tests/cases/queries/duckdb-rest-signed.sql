-- access to the bucket
-- The credentials are those the AWS command line would use here; no secret is
-- written.
INSTALL httpfs;
LOAD httpfs;
INSTALL aws;
LOAD aws;
CREATE OR REPLACE SECRET lakeload (
  TYPE s3,
  PROVIDER credential_chain,
  REGION 'eu-central-1',
  ENDPOINT 'minio:9000',
  URL_STYLE 'path',
  USE_SSL false
);

-- the catalog
-- For DuckDB 1.5 and later; `SHOW ALL TABLES` lists them.
INSTALL iceberg;
LOAD iceberg;
ATTACH '123456789012' AS "lake" (
  TYPE iceberg,
  ENDPOINT 'https://glue.eu-west-1.amazonaws.com/iceberg',
  AUTHORIZATION_TYPE 'sigv4',
  SECRET lakeload,
  SIGV4_SERVICE 'glue',
  SIGV4_REGION 'eu-west-1',
  ACCESS_DELEGATION_MODE 'none'
);
