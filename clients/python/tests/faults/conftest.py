"""Scenes for the driver of each file, which names it DRIVER."""

import pytest

from clients.python.tests.faults.scene import Scene


def _new(request, tmp_path_factory):
    driver = request.module.DRIVER
    if not driver.is_there():
        pytest.skip(f"needs {', '.join(driver.needs)}")
    return Scene(driver, tmp_path_factory.mktemp(driver.name))


@pytest.fixture(scope="module")
def scene(request, tmp_path_factory):
    """A worker that keeps running from one test of the file to the next."""
    scene = _new(request, tmp_path_factory)
    try:
        yield scene.start()
    finally:
        scene.close()


@pytest.fixture
def own_scene(request, tmp_path_factory):
    """A worker of the test's own."""
    scene = _new(request, tmp_path_factory)
    try:
        yield scene.start()
    finally:
        scene.close()
