"""Files of formats that bring their types: Parquet, ORC and Avro."""
