"""Small mistakes that no other test minded, as mutants showed: `make mutants`."""
