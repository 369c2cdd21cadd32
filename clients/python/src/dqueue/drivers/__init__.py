"""The drivers for Celery, Django tasks, Dramatiq and taskiq, and their common parts.

Programs import them as `dqueue.kombu`, `dqueue.django`, `dqueue.dramatiq` and `dqueue.taskiq`. Settings name them so, too.
"""
