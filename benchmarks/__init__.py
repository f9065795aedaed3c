"""Side by side with the peers: every table and figure of the project is made by `python -m benchmarks`."""
