#!/usr/bin/env bash
# Gets the clients of SQS that tests/sqs/test_clients.py runs on dq sqs: those of Python and Node below target/sqs-clients/,
# those of PHP and Go from Debian, where apt-get is here.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

there=$TARGET/sqs-clients
mkdir -p "$there/node"
# install ENVIRONMENT PACKAGE...: an environment of Python with these packages. Those of taskiq want other versions of boto.
install() {
    local place=$there/$1
    shift
    [ ! -f "$place/ready" ] || return 0
    say "clients for Python: $*"
    "$PYTHON" -m venv "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check "$@"
    touch "$place/ready"
}
install python boto3==1.44.8 'celery[sqs]==5.7.0' 'kombu[sqs]==5.7.0'
install taskiq taskiq-aio-sqs==2.1.1 aiobotocore==3.10.0
if have npm && [ ! -d "$there/node/node_modules/sqs-consumer" ]; then
    say "clients for Node"
    (cd "$there/node" && npm install --silent --no-audit --no-fund node@22 @aws-sdk/client-sqs@3.1175.0 sqs-consumer@15.0.3)
fi
if have apt-get && [ "$(id -u)" = 0 ]; then
    say "clients for PHP and Go"
    apt-get install -qq -y --no-install-recommends php-async-aws-sqs golang-github-aws-aws-sdk-go-v2-dev >/dev/null
fi
