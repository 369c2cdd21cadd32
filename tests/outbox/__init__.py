"""What outboxes keep while programs, relays, servers and databases are killed: `faults.py`. The programs are in app.py and
app.php.
"""
