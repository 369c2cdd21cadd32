"""The protocol with the server: the words of each command, and the way in which its reply is read. Nothing here does
I/O.
"""
