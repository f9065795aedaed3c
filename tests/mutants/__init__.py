"""Wrong formulas that the tests must notice: `make mutants`."""
