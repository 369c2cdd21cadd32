"""The messages that a channel holds."""

from collections import defaultdict

from kombu.transport import virtual

from dqueue.kombu.messages import Tag


class QoS(virtual.QoS):
    """The messages that a channel holds. A lease on the server stands for each."""

    def ack(self, delivery_tag: str) -> None:
        if isinstance(delivery_tag, Tag) and not self.channel.ack_soon(
            delivery_tag, self._room_after_ack(), self.prefetch_count
        ):
            self.channel.ack(delivery_tag)
        super().ack(delivery_tag)

    def _room_after_ack(self) -> int:
        """Returns for how many messages there is room after one more ack. 0 where nothing limits them.

        Without a limit a fetch is always on its way. worker_disable_prefetch replaces can_consume and decides itself.
        """
        if not self.prefetch_count or "can_consume" in vars(self):
            return 0
        room: int = self.prefetch_count - (len(self._delivered) - len(self._dirty)) + 1
        return room

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Gives the message back at its old position, or makes it dead with the reason `rejected`."""
        if isinstance(delivery_tag, Tag):
            if requeue:
                self.channel.give_back([(delivery_tag, self._delivered.get(delivery_tag))])
            else:
                self.channel.call("DQ.NACK", self.channel.key(delivery_tag.queue), delivery_tag.receipt, "FATAL")
        super().ack(delivery_tag)

    def restore_unacked(self) -> None:
        """Gives all messages back."""
        self._flush()
        self.channel.give_back([one for one in self._delivered.items() if isinstance(one[0], Tag)])
        self._delivered.clear()

    def touch(self) -> None:
        """Extends the leases of all messages that are held."""
        receipts = defaultdict(list)
        for tag in [*self._delivered]:
            if isinstance(tag, Tag) and tag not in self._dirty:
                receipts[tag.queue].append(tag.receipt)
        if receipts:
            self.channel.call_all(
                [("DQ.TOUCH", self.channel.key(queue), self.channel.lease, *given) for queue, given in receipts.items()]
            )
