"""python -m tests.versions: one row for each language and set of versions. It ends with 1 if a row has failed."""

import argparse
import sys

from tests.harness.server import Server
from tests.harness.topology import Cluster
from tests.versions import node, php, python

LANGUAGES = {"node": node.rows, "python": python.rows, "php": php.rows}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("--language", action="append", choices=LANGUAGES, help="only this one; may be given several times")
    parser.add_argument("--short", action="store_true", help="the oldest versions alone, and fewer tests")
    args = parser.parse_args()
    failed = False
    server, cluster = Server().start(), Cluster().start()
    try:
        for language in args.language or LANGUAGES:
            for versions, problem in LANGUAGES[language](args.short, server, cluster):
                is_left_out = problem is not None and problem.startswith("NOT RUN")
                print(f"{language:<8}{versions:<110}{'ok' if problem is None else problem if is_left_out else 'FAILED'}", flush=True)
                if problem is not None and not is_left_out:
                    failed = True
                    print(problem[-4000:], flush=True)
    finally:
        server.close()
        cluster.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
