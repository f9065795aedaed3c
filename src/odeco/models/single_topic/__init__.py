"""Documents of one topic each."""
