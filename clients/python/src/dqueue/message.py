"""The class `Message`, which programs import from `dqueue`. The name of this module may be in what they have pickled."""

from dqueue.protocol.message import Message

__all__ = ["Message"]
