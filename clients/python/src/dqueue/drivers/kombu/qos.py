"""The messages that a channel holds."""

from kombu.transport import virtual

from dqueue.drivers.kombu.effects import taken
from dqueue.drivers.kombu.keeper import keeper
from dqueue.drivers.kombu.messages import Tag
from dqueue.drivers.kombu.older import forget_reserved_tasks, forgets_running_tasks


class QoS(virtual.QoS):
    """The messages that a channel holds. A lease on the server stands for each."""

    def ack(self, delivery_tag: str) -> None:
        is_ours = isinstance(delivery_tag, Tag) and not taken.take(delivery_tag)
        if is_ours and not self.channel.ack_soon(delivery_tag, self._room_after_ack(), self.prefetch_count):
            self.channel.settle("DQ.ACK", [delivery_tag], lambda: self.channel.ack(delivery_tag))
        super().ack(delivery_tag)

    def _room_after_ack(self) -> int:
        """Returns the number of messages for which there is room after one more ack. 0 where nothing limits them.

        Without a limit a fetch is always on its way. worker_disable_prefetch replaces can_consume and decides itself.
        """
        if not self.prefetch_count or "can_consume" in vars(self):
            return 0
        room: int = self.prefetch_count - (len(self._delivered) - len(self._dirty)) + 1
        return room

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Gives the message back at its old position, or makes it dead with the reason `rejected`."""
        if isinstance(delivery_tag, Tag):
            channel, key = self.channel, self.channel.key(delivery_tag.queue)
            if requeue and delivery_tag.is_lost and channel.counts_lost_workers:
                channel.settle("DQ.TOUCH", [delivery_tag], lambda: channel.end_lease(delivery_tag))
            elif requeue:
                payload = channel.marked(delivery_tag, self._delivered.get(delivery_tag))
                channel.settle("DQ.NACK", [delivery_tag], lambda: channel.give_back_marked([(delivery_tag, payload)]))
            else:
                channel.settle(
                    "DQ.NACK", [delivery_tag], lambda: channel.call("DQ.NACK", key, delivery_tag.receipt, "FATAL")
                )
        super().ack(delivery_tag)

    def restore_unacked(self) -> None:
        """Gives all messages back. If the connection was lost, those of tasks that run are kept, unless nobody will ack them."""
        self._flush()
        held = {tag: message for tag, message in self._delivered.items() if isinstance(tag, Tag) and tag.receipt}
        self._delivered.clear()
        if self.channel.is_lost and not forgets_running_tasks():
            forget_reserved_tasks(held.values())
            keeper().keep(self.channel, held)
        else:
            self.channel.give_back(held.items())

    def touch(self) -> None:
        """Extends the leases of all messages that are held."""
        tags = [tag for tag in [*self._delivered] if isinstance(tag, Tag) and tag not in self._dirty]
        if tags:
            self.channel.touch(tags)
