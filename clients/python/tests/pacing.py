"""A pace of acks that does not depend on the clock."""


class PairPace:
    """Lets an ack wait until there are two, in the place of an AckPace."""

    def may_wait(self, now, waiting, window):
        return waiting < 2

    def has_waited(self, waiting):
        pass
