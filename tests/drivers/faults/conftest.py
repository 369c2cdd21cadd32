"""Scenes for the drivers of each file, which names them DRIVERS."""

import pytest

from tests.drivers.faults.scene import Scene


def pytest_generate_tests(metafunc):
    if "driver" in metafunc.fixturenames:
        drivers = metafunc.module.DRIVERS
        metafunc.parametrize("driver", drivers, ids=[driver.library or driver.name for driver in drivers], scope="module", indirect=True)


@pytest.fixture(scope="module")
def driver(request, tmp_path_factory):
    """The driver and the command of its worker, which is built."""
    return request.param, request.param.command(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def scene(driver, tmp_path_factory):
    """A worker that keeps running from one test to the next."""
    scene = Scene(*driver, tmp_path_factory.mktemp("scene"))
    try:
        yield scene.start()
    finally:
        scene.close()


@pytest.fixture
def own_scene(driver, tmp_path):
    """A worker of the test's own."""
    scene = Scene(*driver, tmp_path)
    try:
        yield scene.start()
    finally:
        scene.close()
