"""AppCDS archives: shared class data that shortens the start of a JVM."""
