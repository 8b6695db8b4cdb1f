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
  REGION 'eu-central-1'
);

-- the catalog
-- For DuckDB 1.4 and later; `SHOW ALL TABLES` lists them.
INSTALL iceberg;
LOAD iceberg;
ATTACH '' AS "lake" (
  TYPE iceberg,
  ENDPOINT 'https://catalog.example.com',
  AUTHORIZATION_TYPE 'none',
  ACCESS_DELEGATION_MODE 'none'
);
