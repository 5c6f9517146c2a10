#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seconds: 240
# The page in a real browser: log in by the link, submit, watch it run, read its log, cancel; dark mode; accessibility.
# `make test-web` installs what it needs; without that it is skipped.
. "$(dirname "$0")/../lib.sh"
modules=${SPUR_WEB_MODULES:-$SPUR_BUILD/web/node_modules}
browser=$(command -v chromium || command -v chromium-browser || true)
[ -d "$modules/playwright-core" ] && [ -n "$browser" ] && command -v node >/dev/null ||
    skip_all "a browser and playwright-core are not here: make test-web"
SPUR_T_REST= cluster_up --nodes 3 --cpus 4 --mem 4G --gpus mi300x:4
[ -n "${SPUR_REST_ADDR:-}" ] || { fail "spur up starts spurrestd"; done_testing; }
cd "$(user_dir)"
as_user sbatch -H -J '<img src=x onerror=alert(1)>' -o /dev/null --wrap true >/dev/null
link=$(as_user spur web)
NODE_PATH=$modules BROWSER=$browser SHOTS=${SPUR_WEB_SHOTS:-} timeout 200 node "$HERE/browser.js" "$link" >"$T/out" 2>"$T/err"
code=$?
while IFS=$'\t' read -r word name more; do
    case $word in
    ok) pass "$name" ;;
    bad) fail "$name" "$more" ;;
    esac
done <"$T/out"
is "the script came to its end" "$code" 0
[ $code -eq 0 ] || sed 's/^/# /' "$T/err" >&2
done_testing
