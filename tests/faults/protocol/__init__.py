"""The Parquet protocol without a JVM: writers as plain processes, killed and deceived."""
