-- the login to the catalog
-- <CLIENT_ID> and <CLIENT_SECRET> are the two halves of {file:
-- /run/secrets/rest}. The values of `headers` go where their names stand. The
-- secret lives in this session's memory. Give readers a login of their own
-- where this one may write.
INSTALL httpfs;
LOAD httpfs;
INSTALL iceberg;
LOAD iceberg;
CREATE OR REPLACE SECRET lakeload_catalog (
  TYPE iceberg,
  CLIENT_ID '<CLIENT_ID>',
  CLIENT_SECRET '<CLIENT_SECRET>',
  OAUTH2_SERVER_URI 'https://login.example.com/token',
  OAUTH2_SCOPE 'catalog',
  EXTRA_HTTP_HEADERS MAP {'X-Tenant': '<X_TENANT>'}
);

-- the catalog
-- For DuckDB 1.4 and later; `SHOW ALL TABLES` lists them.
INSTALL iceberg;
LOAD iceberg;
ATTACH 'ware''house' AS "lake" (
  TYPE iceberg,
  ENDPOINT 'https://catalog.example.com/iceberg',
  SECRET lakeload_catalog
);
