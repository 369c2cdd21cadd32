"""What is said to the server: the words of each command, and how its reply is read. Nothing here does I/O."""
