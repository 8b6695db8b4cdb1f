"""SQL Server, by its JDBC driver."""
