"""Side-by-side benchmarks: lakeload and its peers on the same data (docs/benchmarks.md)."""
