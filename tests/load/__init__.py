"""What millions of messages at one moment do to everybody else on the server: see `python -m tests.load --help`."""
