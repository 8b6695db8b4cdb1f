"""What people do with the commit logs of tables: look at them, recover, reset. No Spark."""
