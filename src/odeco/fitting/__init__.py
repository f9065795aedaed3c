"""What happens to every model in the same way: samples that arrive in chunks, sums made apart and merged."""
