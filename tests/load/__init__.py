"""The effect of millions of messages at one moment on all other clients of the server: see `python -m tests.load
--help`.
"""
