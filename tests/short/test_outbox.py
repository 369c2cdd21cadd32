"""Outboxes under a few kills; `make outbox-faults` does 300."""

import shutil

import pytest

from tests.harness.optional import need
from tests.outbox import faults

PACKAGES = {"laravel": "Illuminate/Database", "symfony": "Doctrine/DBAL"}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "framework, database", [("django", "postgresql"), ("sqlalchemy", "mariadb"), ("laravel", "mariadb"), ("symfony", "postgresql")]
)
def test_what_is_committed_is_sent_once_and_in_order_while_all_is_killed(framework, database):
    if framework in PACKAGES:
        need(shutil.which("php") and faults.has_php_database(PACKAGES[framework]), "PHP with its databases")
    else:
        pytest.importorskip(framework)
    ((_, _, verdict),) = faults.run([framework], [database], 6, seed=1)
    assert faults.is_right(verdict), verdict
    assert verdict["orders"] > 10
