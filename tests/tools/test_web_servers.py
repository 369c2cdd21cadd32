"""`dq web` with servers of other kinds: gone and back, limited users, TLS, clusters."""

import pytest

from tests.harness.server import wait_for

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)


def test_a_server_that_goes_away_and_comes_back(start, make_server):
    server = make_server(appendonly="yes")
    server.client().execute_command("DQ.SEND", "q", "x", "ID", "m")
    me = start(url=f"redis://127.0.0.1:{server.port}").visitor()
    me.sees("", "q")
    assert me.ask("health").status == 200
    server.stop()
    me.sees("", "no connection", "The figures are old", "q")
    assert me.ask("health").status == 503
    assert "no connection" in me.get("queue", queue="q", status=503).words()
    assert "no connection" in me.get("confirm", act="empty", queue="q", status=503).words()
    server.start()
    assert "m" in me.get("messages", queue="q", state="ready").links()
    wait_for(lambda: me.ask("health").status == 200, 20, "the figures")
    assert "no connection" not in me.get("").words()


def test_a_server_that_is_not_there_yet(start, make_server):
    server = make_server()
    server.stop()
    me = start(url=f"redis://127.0.0.1:{server.port}").visitor()
    assert "no connection" in me.sees("", "no connection").words()
    server.start()
    server.client().execute_command("DQ.SEND", "q", "x")
    me.sees("", "q")


def test_a_limited_user_sees_and_does_what_is_allowed(start, server, shop):
    rights = "+hello +scan +dq.info +dq.get +dq.list +dq.groups +dq.pause"
    shop.execute_command(*f"ACL SETUSER viewer on >pa55 ~shop* -@all {rights}".split())
    try:
        me = start(url=f"redis://viewer:pa55@127.0.0.1:{server.port}").visitor()
        page = me.sees("", "shop")
        assert "mails" not in page.words()
        assert "ann" in me.get("queue", queue="shop").words()
        assert "died" in me.get("message", queue="shop", id="dead").words()
        assert "NOPERM" in me.get("messages", queue="shop", state="dead", id="*", status=403).words()
        assert "NOPERM" in me.get("confirm", act="purge", queue="shop", state="dead", id="*", status=403).words()
        assert "shop is paused" in me.act(act="pause", queue="shop").words()
        assert "Not done: NOPERM" in me.act(act="resume", queue="shop").words()
    finally:
        shop.execute_command("ACL", "DELUSER", "viewer")


def test_the_connection_can_be_tls(start, tls_url, certificates):
    options = ["--cacert", certificates / "ca.crt", "--cert", certificates / "own.crt", "--key", certificates / "own.key"]
    me = start(url=tls_url, before=options).visitor()
    me.sees("", "q")
    assert "pa55" not in me.get("").text
    assert "is paused" in me.act(act="pause", queue="q").words()


def test_a_cluster_is_one_server(start, cluster):
    def do(key, name, *args):
        return cluster.owner(key).client().execute_command(name, key, *args)

    for key in cluster.nodes[0].client().execute_command("DQ.PARTITIONS", "mails", 4):
        do(key, "DQ.SEND", "x", "ID", b"in " + key)
    for n in range(6):
        do(f"q{n}", "DQ.SEND", "x", "ID", "m")
    me = start(url=f"redis://127.0.0.1:{cluster.nodes[2].port}").visitor()
    me.sees("", "mails:{*}", "4 queues", *[f"q{n}" for n in range(6)])
    me.sees("family", "mails:{0}", "mails:{3}", family="mails")
    assert {f"in mails:{{{n}}}" for n in range(4)} <= set(me.get("messages", family="mails", state="ready").links())
    for n in range(6):
        assert "m" in me.get("messages", queue=f"q{n}", state="ready").links()
    assert "4 messages cancelled" in me.act(act="cancel", family="mails", state="ready").words()
    source = cluster.owner("q0")
    target = next(node for node in cluster.nodes if node is not source)
    cluster.move_slot(cluster.slot("q0"), source, target)
    assert "q0 is paused" in me.act(act="pause", queue="q0").words()
    assert "m" in me.get("messages", queue="q0", state="ready").links()
