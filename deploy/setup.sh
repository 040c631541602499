#!/usr/bin/env bash
# Makes the virtual environment that every make target uses: deploy/setup.sh PYTHON VENV REQUIREMENTS [SPARK-REQUIREMENTS]
set -euo pipefail
python=$1 venv=$2 requirements=$3 spark=${4:-}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case "$version" in
  3.11 | 3.12) ;;
  *)
    echo "offsetd needs Python 3.11 or 3.12 ($python is $version, for which plyvel has no wheel): install one and run 'make PYTHON=python3.12 ...'" >&2
    exit 1
    ;;
esac
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$requirements"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
if [ -z "$spark" ]; then
  exit 0
elif java -version >/dev/null 2>&1; then
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$spark"
else
  echo "java: not found, so Spark is not set up, and tests of the pipeline that need it are skipped"
fi
