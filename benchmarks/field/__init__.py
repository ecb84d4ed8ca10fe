"""Against the field: data × model × method × measure, one part at a time (see README.md beside this file)."""
