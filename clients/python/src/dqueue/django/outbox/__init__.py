"""The app of the outbox, for INSTALLED_APPS. See `dqueue.drivers.django.outbox`."""
