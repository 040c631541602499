#!/usr/bin/env bash
# Makes the virtual environment that every make target uses: deploy/setup.sh PYTHON VENV REQUIREMENTS [SPARK-REQUIREMENTS]
set -euo pipefail
python=$1 venv=$2 requirements=$3 spark=${4:-}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case "$version" in
  3.11 | 3.12) ;;
  *)
    echo "offsetd needs Python 3.11 or 3.12 ($python is $version; plyvel has no wheel for newer ones): install one and run 'make PYTHON=python3.12 ...'" >&2
    exit 1
    ;;
esac
# No network may hold a set-up for ever; macOS has no `timeout`.
install() {
  local bound=()
  if command -v timeout >/dev/null; then bound=(timeout 900); fi
  ${bound[@]+"${bound[@]}"} "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}
"$python" -m venv "$venv"
install --require-hashes -r "$requirements"
install --no-deps --no-build-isolation -e .
if [ -z "$spark" ]; then
  exit 0
elif ! java -version >/dev/null 2>&1; then
  echo "java: not found, so Spark is not set up, and tests of the pipeline that need it are skipped"
elif ! install --require-hashes -r "$spark"; then
  echo "$spark: cannot be had here, so Spark is not set up, and tests of the pipeline that need it are skipped"
fi
