#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The files of the web page: served by spurrestd with a strict policy, and whole.
. "$(dirname "$0")/../lib.sh"
command -v curl >/dev/null || skip_all "curl is not here"
SPUR_T_REST= cluster_up --nodes 1
web=$HERE/../../src/spurrestd/web
[ -n "${SPUR_REST_ADDR:-}" ] || { fail "spur up starts spurrestd"; done_testing; }
is "the page" "$(curl -s "$SPUR_REST_ADDR/" | sha256sum)" "$(sha256sum <"$web/index.html")"
for file in $(cd "$web" && find . -name '*.js' -o -name '*.css' | sed 's|^\./||' | sort); do
    is "$file" "$(curl -s "$SPUR_REST_ADDR/$file" | sha256sum)" "$(sha256sum <"$web/$file")"
done
is "packed, the same" "$(curl -s --compressed "$SPUR_REST_ADDR/app.js" | sha256sum)" "$(sha256sum <"$web/app.js")"
head=$(curl -sI -H 'Accept-Encoding: gzip' "$SPUR_REST_ADDR/app.js" | tr -d '\r')
like "packed" "$head" 'Content-Encoding: gzip'
like "only scripts of ours run" "$head" "Content-Security-Policy: default-src 'none'; script-src 'self';"
unlike "and none in the text" "$head" unsafe-inline
tag=$(sed -n 's/^ETag: //p' <<<"$head")
is "not sent twice" "$(curl -s -o /dev/null -w '%{http_code}' -H "If-None-Match: $tag" "$SPUR_REST_ADDR/app.js")" 304
is "sent when it is another" "$(curl -s -o /dev/null -w '%{http_code}' -H 'If-None-Match: "x"' "$SPUR_REST_ADDR/app.js")" 200
is "only to be read" "$(curl -s -o /dev/null -w '%{http_code}' -X POST "$SPUR_REST_ADDR/app.js")" 404
is "nothing else" "$(curl -s -o /dev/null -w '%{http_code}' --path-as-is "$SPUR_REST_ADDR/../app.js")" 404
is "texts of users are never taken for HTML" "$(grep -rlE 'innerHTML|dangerouslySet|document\.write|eval\(' "$web" --include='*.js' | grep -v vendor/)" ""
is "what others wrote is what the table says" \
    "$(sha256sum "$web"/vendor/*.js | cut -d' ' -f1)" "$(grep -oE '[0-9a-f]{64}' "$web/README.md")"
link=$(spur web)
like "a link that logs in" "$link" "^$SPUR_REST_ADDR/#token=[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$"
is "its token is good" "$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer ${link#*#token=}" "$SPUR_REST_ADDR/api/v1/jobs")" 200
run spur web x
is "no argument" "$code" 1
done_testing
