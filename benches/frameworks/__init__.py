"""Frameworks on dq beside the same frameworks on their own transport for Redis (`make bench-frameworks`).

    python -m benches.frameworks --smoke

`contenders` starts and kills the workers of a framework on one transport, `measures` has one function for each row of
the table, `celery_app`, `dramatiq_app` and `laravel.php` are the applications.
"""
