"""The cost of families, and how evenly they spread: `make bench-families`."""
