"""The files in packaging/ for containers and Kubernetes fit together, and fit the files that they are made of.

`make test-container` runs the steps of the Containerfile itself.
"""

import json
import os
import re
import shutil
import subprocess

import pytest
import redis
import yaml

from tests.harness.optional import need
from tests.harness.server import ROOT, engine, free_port, module_path, wait_for
from tests.harness.wire import Wire

CONTAINER = ROOT / "packaging/container"
KUBERNETES = ROOT / "packaging/kubernetes"
CONTAINERFILE = (CONTAINER / "Containerfile").read_text()
COMPOSE = yaml.safe_load((CONTAINER / "compose.yaml").read_text())
STAGES = re.findall(r"^FROM \S+ AS (\w+)$", CONTAINERFILE, re.MULTILINE)
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def manifests() -> dict:
    """Kind -> the only manifest of this kind."""
    found = list(yaml.safe_load_all((KUBERNETES / "dq.yaml").read_text()))
    kinds = {one["kind"]: one for one in found}
    assert len(kinds) == len(found)
    return kinds


def test_the_images_are_built_with_the_rust_that_is_needed():
    needed = re.search(r'^rust-version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert f"ARG RUST={needed}\n" in CONTAINERFILE


def test_every_file_that_an_image_copies_exists():
    copied = re.findall(r"^COPY (?!--from)(\S+) ", CONTAINERFILE, re.MULTILINE)
    assert len(copied) >= 3
    for source in copied:
        assert (ROOT / source).exists(), source


def test_no_image_runs_as_root_and_each_has_a_health_check():
    for text in CONTAINERFILE.split("\nFROM ")[2:]:
        assert re.search(r"^USER (?!root)", text, re.MULTILINE), text[:80]
        assert "\nHEALTHCHECK " in text
        assert json.loads(re.search(r"^CMD (.*)$", text, re.MULTILINE)[1])


def test_compose_names_stages_files_volumes_and_services_that_exist():
    services = COMPOSE["services"]
    for name, service in services.items():
        if "build" in service:
            assert service["build"]["target"] in STAGES, name
            assert (CONTAINER / service["build"]["context"]).resolve() == ROOT
            assert (ROOT / service["build"]["dockerfile"]).exists()
        else:
            assert re.search(r":v?[\d.]+$", service["image"]), f"{name} has no fixed version"
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert source in COMPOSE["volumes"] or (CONTAINER / source).is_file(), mount
        assert set(service.get("depends_on", ())) <= set(services)
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), f"{name} is open to other machines"


def test_prometheus_and_grafana_of_compose_read_the_files_of_monitoring():
    prometheus = yaml.safe_load((CONTAINER / "prometheus.yml").read_text())
    [job] = prometheus["scrape_configs"]
    assert job["job_name"] == "dq", "the alert DqDown names the job"
    host, port = job["static_configs"][0]["targets"][0].split(":")
    assert f"0.0.0.0:{port}" in COMPOSE["services"][host]["command"]
    mounted = {mount.split(":")[1] for mount in COMPOSE["services"]["prometheus"]["volumes"]}
    assert set(prometheus["rule_files"]) <= mounted
    boards = yaml.safe_load((CONTAINER / "grafana-dashboards.yaml").read_text())["providers"][0]["options"]["path"]
    assert any(mount.split(":")[1].startswith(boards) for mount in COMPOSE["services"]["grafana"]["volumes"])


def test_the_manifests_select_name_and_mount_what_exists():
    kinds = manifests()
    spec = kinds["StatefulSet"]["spec"]
    pod = spec["template"]
    labels = pod["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert kinds["Service"]["spec"]["selector"].items() <= labels.items()
    assert spec["serviceName"] == kinds["Service"]["metadata"]["name"]
    ports = {port["name"] for container in pod["spec"]["containers"] for port in container["ports"]}
    assert {port["targetPort"] for port in kinds["Service"]["spec"]["ports"]} <= ports
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
    for container in pod["spec"]["containers"]:
        name, version = container["image"].split(":")
        assert name.removeprefix("dq-") in STAGES and version == VERSION
        assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes
        assert "readinessProbe" in container or container["name"] == "web"
    maps = {volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if "configMap" in volume}
    assert maps == {kinds["ConfigMap"]["metadata"]["name"]}
    assert pod["spec"]["terminationGracePeriodSeconds"] >= 60


def test_the_user_of_the_manifests_is_that_of_the_image():
    pod = manifests()["StatefulSet"]["spec"]["template"]["spec"]
    assert f"useradd --system --uid {pod['securityContext']['runAsUser']} " in CONTAINERFILE
    assert f"groupadd --system --gid {pod['securityContext']['fsGroup']} " in CONTAINERFILE


def test_the_server_of_an_image_keeps_the_settings_of_a_reliable_queue():
    conf = (CONTAINER / "redis.conf").read_text()
    assert "\ninclude /etc/redis/dq.conf\n" in conf
    assert "\nmaxmemory-policy noeviction\n" in conf


# ---- passwords


def test_no_url_and_no_command_line_has_a_password():
    """The password reaches each container as a file."""
    pod = manifests()["StatefulSet"]["spec"]["template"]["spec"]
    services = [*COMPOSE["services"].values(), *pod["containers"]]
    for service in services:
        words = [*service.get("command", ()), *service.get("args", ()), *str(service.get("environment", "")).split()]
        words += [str(variable.get("value", "valueFrom")) for variable in service.get("env", ())]
        for word in map(str, words):
            assert "DQ_PASSWORD}" not in word and "valueFrom" not in word and "$(" not in word, word
            assert not re.search(r"://[^/]*@", word) and word != "--requirepass", word
    assert COMPOSE["secrets"] == {"dq_password": {"environment": "DQ_PASSWORD"}}
    for name in ("server", "exporter", "web", "grafana"):
        assert COMPOSE["services"][name]["secrets"] == ["dq_password"], name
    [secret] = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    assert secret == {"secretName": "dq", "defaultMode": 0o440}


@pytest.fixture
def container(tmp_path):
    """Runs a script of the images as in a container whose configuration has this port and no module."""
    conf = tmp_path / "container.conf"
    port = free_port()
    conf.write_text(f"port {port}\nsave ''\ndir {tmp_path}\n")
    env = {**os.environ, "DQ_PASSWORD_FILE": str(tmp_path / "password")}

    def run(script, *args):
        text = (CONTAINER / script).read_text().replace("/etc/redis/container.conf", str(conf))
        (tmp_path / script).write_text(text.replace("redis-cli ", f"redis-cli -p {port} "))
        return subprocess.Popen(["sh", tmp_path / script, *args], env=env, stdout=subprocess.DEVNULL)

    run.port, run.secret = port, tmp_path / "password"
    return run


@pytest.mark.parametrize("password", ["plain", "a b\"c\\d#$x'@/:%"])
def test_a_container_takes_any_password_from_a_file(container, password):
    container.secret.write_text(password + "\n")
    server = container("serve", "--maxmemory", "100mb")
    try:
        client = redis.Redis(port=container.port, password=password)

        def answers():
            try:
                return client.ping()
            except redis.ConnectionError:
                return False

        wait_for(answers, what="the server")
        assert client.config_get("maxmemory")["maxmemory"] == str(100 << 20)
        with open(f"/proc/{server.pid}/cmdline") as line:
            assert password not in line.read()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=container.port).ping()
        need(shutil.which("redis-cli"), "redis-cli")
        assert container("healthy", "PING").wait(30) == 0
        assert container("healthy").wait(30) != 0, "it has no module"
    finally:
        server.kill()
        server.wait()


def test_a_container_with_an_empty_password_does_not_start(container):
    container.secret.write_text("\n")
    assert container("serve").wait(30) == 1


@pytest.mark.parametrize("service", ["dq-exporter", "dq-web"])
def test_a_service_of_the_package_may_do_little(service):
    need(shutil.which("systemd-analyze"), "systemd-analyze")
    unit = ROOT / f"packaging/systemd/{service}.service"
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=29", unit]
    scored = subprocess.run(command, capture_output=True, text=True)
    assert scored.returncode == 0, scored.stdout[-200:]


# ---- the image that takes the place of valkey/valkey


@pytest.fixture
def enter(tmp_path):
    """Runs the entrypoint with a server that prints its arguments."""
    for name in ("valkey-server", "redis-server", "dq"):
        (tmp_path / name).write_text('#!/bin/sh\necho "${0##*/}" "$@"\n')
        (tmp_path / name).chmod(0o755)

    def enter(*words, **variables):
        # Makes the script run as if it had given up the rights of root already.
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "VALKEY_ENTRYPOINT_AGAIN": "yes", **variables}
        return subprocess.check_output([CONTAINER / "docker-entrypoint.sh", *words], env=env, cwd=tmp_path, text=True).strip()

    return enter


DEFAULTS = "--loadmodule /usr/local/libexec/dq/libdq.so --protected-mode no --appendonly yes --maxmemory-policy noeviction"


@pytest.mark.parametrize(
    "words, becomes",
    [
        (["valkey-server"], f"valkey-server {DEFAULTS}"),
        (["redis-server"], f"redis-server {DEFAULTS}"),
        (["--maxmemory", "2gb"], f"valkey-server {DEFAULTS} --maxmemory 2gb"),
        (["valkey-server", "--appendonly", "no"], f"valkey-server {DEFAULTS} --appendonly no"),
        (["my.conf", "--port", "7"], "valkey-server my.conf --loadmodule /usr/local/libexec/dq/libdq.so --port 7"),
        (["valkey-server", "my.conf"], "valkey-server my.conf --loadmodule /usr/local/libexec/dq/libdq.so"),
        (["valkey-server", "own.conf"], "valkey-server own.conf"),
        (["dq", "top"], "dq top"),
    ],
)
def test_the_entrypoint_passes_arguments_through(enter, tmp_path, words, becomes):
    (tmp_path / "my.conf").write_text("port 6379\n")
    (tmp_path / "own.conf").write_text("loadmodule /modules/libdq.so\n")
    assert enter(*words) == becomes


def test_the_entrypoint_takes_flags_and_a_module_from_the_environment(enter):
    assert enter("valkey-server", VALKEY_EXTRA_FLAGS="--io-threads 2").endswith("noeviction --io-threads 2")
    assert enter("valkey-server", DQ_MODULE="/other.so").startswith("valkey-server --loadmodule /other.so ")
    assert "loadmodule" not in enter("valkey-server", DQ_MODULE="")


def test_a_real_server_accepts_what_the_entrypoint_gives_it(tmp_path):
    (tmp_path / "valkey-server").symlink_to(shutil.which(engine()))
    if "redis-check" in os.path.realpath(tmp_path / "valkey-server"):
        # Debian's tools have the server under the name of another program, which decides its role.
        (tmp_path / "valkey-server").unlink()
        shutil.copy(os.path.realpath(shutil.which(engine())), tmp_path / "valkey-server")
    port = free_port()
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "VALKEY_ENTRYPOINT_AGAIN": "yes", "DQ_MODULE": str(module_path())}
    words = [CONTAINER / "docker-entrypoint.sh", "--port", str(port)]
    with subprocess.Popen(words, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL) as server:

        def answers():
            assert server.poll() is None
            try:
                with Wire(port) as wire:
                    return wire.call("DQ.SEND", "q", "x", "ID", "a") == b"a"
            except OSError:
                return False

        wait_for(answers, 60, "the server")
        server.terminate()
    assert server.returncode == 0 and (tmp_path / "appendonlydir").is_dir()


def test_the_image_takes_a_bundle_and_needs_no_compiler():
    text = (CONTAINER / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["docker-entrypoint.sh"]' in text and "VOLUME /data" in text and "\nHEALTHCHECK " in text
    assert text.count("\nFROM ") == 1 and "apt-get" not in text
    uid, gid = (manifests()["StatefulSet"]["spec"]["template"]["spec"]["securityContext"][key] for key in ("runAsUser", "fsGroup"))
    assert f"--gid {gid} valkey" in text and f"--uid {uid} --gid valkey" in text


# ---- what operators add


def test_kustomizations_name_files_that_exist():
    found = list(KUBERNETES.rglob("kustomization.yaml"))
    assert len(found) == 3
    for file in found:
        told = yaml.safe_load(file.read_text())
        assert told["kind"] == ("Kustomization" if file.parent == KUBERNETES else "Component")
        for name in told["resources"]:
            assert yaml.safe_load_all((file.parent / name).read_text())


def test_prometheus_reads_the_port_of_the_exporter():
    monitor = yaml.safe_load((KUBERNETES / "prometheus-operator/servicemonitor.yaml").read_text())["spec"]
    service = manifests()["Service"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_workers_are_scaled_by_what_can_be_done_now():
    """The query names a metric, labels and states that the exporter has."""
    [trigger] = yaml.safe_load((KUBERNETES / "keda/scaledobject.yaml").read_text())["spec"]["triggers"]
    query = trigger["metadata"]["query"]
    page = (ROOT / "docs/monitoring.md").read_text()
    assert re.search(r"\| `dq_queue_messages` \| gauge \| messages by `state`", page)
    states = re.search(r'dq_queue_messages\{queue="orders",state=~"([a-z|]+)"\}', query)[1].split("|")
    assert states == ["ready", "running"]


def test_the_operator_loads_the_module_where_the_image_has_it():
    spec = yaml.safe_load((KUBERNETES / "valkey-operator/cluster.yaml").read_text())["spec"]
    [module] = spec["modules"]
    assert module["path"] in (CONTAINER / "docker-entrypoint.sh").read_text()
    assert spec["image"].split(":")[1] == VERSION
    assert spec["config"]["maxmemory-policy"] == "noeviction" and spec["config"]["appendonly"] == "yes"
