#!/usr/bin/env bash
# Locks versions with hashes for Python 3.11 and 3.12: deploy/lock.sh PYTHON
# Only versions and hashes are written, never the place that they came from.
set -euo pipefail
python=$1
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"$python" -m venv "$tools/venv"
"$tools/venv/bin/pip" install --quiet uv
options=(--universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet)
"$tools/venv/bin/uv" pip compile "${options[@]}" pyproject.toml -o requirements/run.txt
"$tools/venv/bin/uv" pip compile "${options[@]}" pyproject.toml --group dev requirements/build.in -o requirements/dev.txt
# What the pipeline needs besides, where there is a Java to run it.
"$tools/venv/bin/uv" pip compile "${options[@]}" requirements/spark.in --constraint requirements/dev.txt -o requirements/spark.txt
# What an image is built with: the builds of development less what editable installs need.
sed '/^editables==/d' requirements/build.in | "$tools/venv/bin/uv" pip compile "${options[@]}" - -o requirements/build.txt
"$tools/venv/bin/uv" pip compile "${options[@]}" deploy/checks.in -o deploy/checks.txt
