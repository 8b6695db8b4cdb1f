"""Oracle, by its JDBC driver."""
