"""Workers in Node, PHP and Go behind a way to the server that breaks, at each moment of their work."""
