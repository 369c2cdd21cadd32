"""A queue under virtual time, for pytest.

The fixture `manual_queue` creates queues of `CLOCK MANUAL`. Their time moves only when the test says so, so hours of
delays, backoffs and schedules pass at once, and exactly. The handlers under test are those of the real worker.

    def test_reminder_comes_after_an_hour(manual_queue):
        mails = manual_queue()
        mails.send("remind ann", type="remind", delay=3_600_000)
        assert mails.work(worker) == []
        mails.advance(3_600_000)
        assert [message.text for message in mails.work(worker)] == ["remind ann"]

The fixture `dq_queue` is one such queue with the options of a new one. The fixtures are in dqueue_pytest.

The server is a new one of the program dq (`Server`), or the one that DQ_TEST_URL names (it needs the module). Override
the fixture `dq_url` to choose another way. Each queue has a key of its own, which is deleted after the test.
"""

from dqueue_pytest import dq_client, dq_queue, dq_server, dq_url, manual_queue

from dqueue.ephemeral_server import Server
from dqueue.manual_queue import ManualQueue

# The fixtures are in a module of their own, because pytest imports it in every run.
__all__ = ["ManualQueue", "Server", "dq_client", "dq_queue", "dq_server", "dq_url", "manual_queue"]
