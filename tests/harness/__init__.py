"""What the server tests stand on: real servers, a raw wire client, reply readers."""
