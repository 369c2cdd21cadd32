"""What families cost and how evenly they spread: `make bench-families`."""
