#!/bin/sh
# The command of the image: qpubsub run; but with variables of IBM's container image, the queue manager for tests that
# qpubsub dev is, with IBM's ports, scripts, secrets and volume (docs/testing.md).
set -eu
if [ -z "${LICENSE:-}${MQ_QMGR_NAME:-}${MQ_APP_PASSWORD:-}${MQ_ADMIN_PASSWORD:-}" ]; then
  # The first start makes the queue manager; of two that start at once one is refused, and run finds it made.
  [ -d "$QPUBSUB_HOME/QM1" ] || qpubsub status -m QM1 > /dev/null 2>&1 || qpubsub create QM1 || true
  exec qpubsub run --config /etc/qpubsub/qpubsub.toml
fi
if [ -r /run/secrets/mqAppPassword ]; then
  MQ_APP_PASSWORD=$(cat /run/secrets/mqAppPassword)
  export MQ_APP_PASSWORD
fi
if [ -r /run/secrets/mqAdminPassword ]; then
  MQ_ADMIN_PASSWORD=$(cat /run/secrets/mqAdminPassword)
  export MQ_ADMIN_PASSWORD
fi
exec qpubsub dev --listen 0.0.0.0:1414 --metrics 0.0.0.0:9157 --home /mnt/mqm --mqsc /etc/mqm
