#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# spurrestd: the seed's three curl lines, who the caller is, what is refused, a controller that restarts.
. "$(dirname "$0")/../lib.sh"
command -v curl >/dev/null || skip_all "curl is not installed"
SPUR_T_REST=
cluster_up --nodes 1 --cpus 4
chmod 777 "$T"
cd "$T" || exit 1
R=$SPUR_REST_ADDR
get() { curl -s --max-time 30 "$@"; }
status() { curl -s -o /dev/null --max-time 30 -w '%{http_code}' "$@"; }
field() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }

like "spur up says where it is" "$(cat "$T/up.log")" 'Page: +http://localhost:[0-9]+/ +\(REST: /api/v1/ping\)'
is "ping needs no name" "$(get "$R/api/v1/ping" | field 'd["pings"][0]["pinged"], d["cluster"]')" "('UP', 'spur')"

body='{"job": {"name": "test", "partition": "debug", "nodes": 1, "current_working_directory": "'$T'", "script": "#!/bin/bash\necho hello from $SLURM_JOB_NAME"}}'
id=$(as_user curl -s -X POST "$R/api/v1/job/submit" -H "Content-Type: application/json" -d "$body" | field 'd["job_id"]')
like "a user submits without a token" "$id" '^[0-9]+$'
ok "it ends" wait_for 30 job_is "$id" COMPLETED
is "it ran" "$(cat "$T/slurm-$id.out")" "hello from test"
is "it is the user's" "$(get "$R/api/v1/job/$id" | field 'd["jobs"][0]["user_id"]')" "$([ "$(id -u)" = 0 ] && echo $TEST_UID || id -u)"
is "jobs lists it" "$(get "$R/api/v1/jobs" | field '[j["job_id"] for j in d["jobs"]]')" "[$id]"
is "so does Slurm's path" "$(get "$R/slurm/v0.0.42/jobs/" | field '[j["name"] for j in d["jobs"]]')" "['test']"
is "over HTTP/2" "$(get --http2-prior-knowledge -w '%{http_version}' -o "$T/h2" "$R/slurm/v0.0.42/nodes/" && field 'd["nodes"][0]["name"]' <"$T/h2")" "2n1"
is "over the unix socket" "$(get --unix-socket "$D/rest/rest.sock" http://x/api/v1/partitions | field 'd["partitions"][0]["name"]')" "debug"
is "YAML" "$(get -H 'Accept: application/yaml' "$R/slurm/v0.0.42/ping/" | grep -c 'pinged')" 1

# REST and squeue write the same objects.
get "$R/slurm/v0.0.42/job/$id" >"$T/rest.json"
squeue --json=v0.0.42 -t all -j "$id" >"$T/squeue.json"
ok "the job is what squeue --json shows" python3 - "$T/rest.json" "$T/squeue.json" <<'PY'
import json, sys
a, b = (json.load(open(f))["jobs"][0] for f in sys.argv[1:])
a["cluster"] = b["cluster"] = ""  # squeue does not know it
sys.exit(0 if a == b else str({k: (a.get(k), b.get(k)) for k in set(a) | set(b) if a.get(k) != b.get(k)}))
PY

# ---- who may ----
token=$(spur token | cut -d= -f2)
is "a token" "$(status -H "Authorization: Bearer $token" "$R/api/v1/jobs")" 200
is "Slurm's header" "$(status -H "X-SLURM-USER-TOKEN: $token" "$R/slurm/v0.0.42/jobs/")" 200
is "a wrong token does not fall back to the socket" "$(status -H "Authorization: Bearer abc" "$R/api/v1/jobs")" 401
is "nor under /slurm" "$(get -H "X-SLURM-USER-TOKEN: abc" "$R/slurm/v0.0.42/jobs/")" "Authentication failure"
is "two that differ" "$(status -H "Authorization: Bearer $token" -H "X-SLURM-USER-TOKEN: abc" "$R/api/v1/jobs")" 401
is "another name than the token's, by an administrator" "$(get -H "X-SLURM-USER-NAME: nobody" -H "X-SLURM-USER-TOKEN: $token" "$R/slurm/v0.0.42/jobs/" | field 'len(d["jobs"])')" 1
if [ "$(id -u)" -eq 0 ]; then
    user_token=$(spur token --user daemon | cut -d= -f2)
    is "another name by somebody else" "$(status -H "X-SLURM-USER-NAME: root" -H "X-SLURM-USER-TOKEN: $user_token" "$R/api/v1/jobs")" 403
fi
for header in "Host: evil.example" "Origin: http://evil.example" "Sec-Fetch-Site: cross-site" "Forwarded: for=1.2.3.4" "X-Forwarded-For: 1.2.3.4" "Via: 1.1 x"; do
    is "refused without a token: $header" "$(status -H "$header" "$R/api/v1/jobs")" 403
done
is "with one it is not" "$(status -H "Host: evil.example" -H "Authorization: Bearer $token" "$R/api/v1/jobs")" 200
like "and says why" "$(spurrestd -D --controller "unix:$D/run/ctl1.sock" --state-dir "$T/no" 2>&1)" 'does not run as'

# ---- paging ----
for i in 1 2 3; do sbatch -Q -H -o /dev/null --wrap true; done
page=$(get "$R/api/v1/jobs?limit=2&state=PENDING" | field '[j["job_id"] for j in d["jobs"]], d["next_cursor"]')
cursor=$(sed "s/.*'\\(.*\\)').*/\\1/" <<<"$page")
like "a page and where it goes on" "$page" "^\\(\\[[0-9]+, [0-9]+\\], '[0-9]+'\\)$"
is "the rest" "$(get "$R/api/v1/jobs?limit=2&state=PENDING&cursor=$cursor" | field 'len(d["jobs"]), d["next_cursor"]')" "(1, '')"
scancel --me

# ---- TLS, and a spurrestd that has not joined ----
if [ "$(id -u)" -eq 0 ] && command -v openssl >/dev/null; then
    mkdir "$T/tls"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$T/tls/key" -out "$T/tls/crt" 2>/dev/null
    chmod 600 "$T/tls/key"
    chown -R 65534:65534 "$T/tls"
    setpriv --reuid 65534 --regid 65534 --clear-groups -- "$(command -v spurrestd)" -D --controller "http://127.0.0.1:$(cut -d' ' -f1 "$D/run/ports")" \
        --listen 127.0.0.1:0 --state-dir "$T/tls/state" --tls-cert "$T/tls/crt" --tls-key "$T/tls/key" >"$T/tls.log" 2>&1 &
    tls=$!
    wait_for 20 grep -q http.listening "$T/tls.log"
    S=https://localhost:$(sed -n 's/.*http.listening.*:\([0-9]*\)$/\1/p' "$T/tls.log")
    is "TLS, HTTP/2 by ALPN" "$(get -k -o /dev/null -w '%{http_version} %{http_code}' "$S/api/v1/ping")" "2 200"
    is "TLS, HTTP/1.1" "$(get -k --http1.1 -o /dev/null -w '%{http_version} %{http_code}' -H "Authorization: Bearer $token" "$S/api/v1/jobs")" "1.1 200"
    is "without having joined it names nobody" "$(status -k "$S/api/v1/jobs")" 401
    kill -HUP $tls
    ok "certificates are read again" wait_for 10 grep -q 'tls.reload done' "$T/tls.log"
    is "and it serves" "$(status -k "$S/api/v1/ping")" 200
    kill $tls
    wait $tls
    is "it ends in order" "$?" 0
fi

# ---- errors ----
is "no such path" "$(status "$R/api/v1/nothing")" 404
is "no such path of Slurm's" "$(get "$R/slurm/v0.0.42/nothing")" "Invalid or unknown URL path"
is "an old version" "$(status "$R/slurm/v0.0.1/ping/")" 404
is "another method" "$(status -X DELETE "$R/api/v1/ping")" 405
is "no such job" "$(get "$R/slurm/v0.0.42/job/99999999" | field 'd["errors"][0]["error_number"]')" 2017
is "its status" "$(status "$R/slurm/v0.0.42/job/99999999") $(status "$R/api/v1/job/99999999")" "404 404"
is "no job id" "$(status "$R/slurm/v0.0.42/job/abc") $(status "$R/api/v1/job/abc")" "422 400"
is "no script" "$(status -X POST -H 'Content-Type: application/json' -d '{}' "$R/slurm/v0.0.42/job/submit")" 422
is "no JSON" "$(get -X POST -H 'Content-Type: application/json' -d '{"job":' "$R/slurm/v0.0.42/job/submit")" "Failure during parsing"
is "no environment under /slurm" "$(get -X POST -H 'Content-Type: application/json' -d '{"job":{"script":"#!/bin/sh\ntrue\n","current_working_directory":"/"}}' "$R/slurm/v0.0.42/job/submit" | field 'd["errors"][0]["error_number"]')" 2127
is "an unknown field is a warning there" "$(get -X POST -H 'Content-Type: application/json' -d '{"job":{"nosuchfield":1}}' "$R/slurm/v0.0.42/job/submit" | field 'd["warnings"][0]["source"]')" "#/job/nosuchfield/"
is "and an error in the native API" "$(status -X POST -H 'Content-Type: application/json' -d '{"job":{"nosuchfield":1,"script":"#!/bin/sh"}}' "$R/api/v1/job/submit")" 400
is "another type" "$(status -H 'Accept: text/plain' "$R/slurm/v0.0.42/ping/")" 415
is "YAML in" "$(get -X POST -H 'Content-Type: application/yaml' --data-binary $'job:\n  name: y\n  hold: true\n  current_working_directory: /\n  script: "#!/bin/sh\\ntrue\\n"\n' "$R/api/v1/job/submit" | field 'type(d["job_id"]).__name__')" int
is "an alias is refused" "$(status -X POST -H 'Content-Type: application/yaml' --data-binary $'job: &a\n  name: y\nx: *a\n' "$R/api/v1/job/submit")" 400

# ---- the same request twice, and a controller that restarts ----
body='{"job": {"name": "once", "hold": true, "current_working_directory": "/", "script": "#!/bin/sh\ntrue"}}'
submit_once() { get -X POST -H 'Content-Type: application/json' -H 'Idempotency-Key: k1' -d "$body" "$R/api/v1/job/submit" | field 'd["job_id"]'; }
first=$(submit_once)
is "a wrong token is refused before anything is read" "$(status -X POST -H "Authorization: Bearer abc" -d "{" "$R/api/v1/job/submit")" 401
is "the same key gives the same job" "$(submit_once)" "$first"
pid=$(cut -d' ' -f1 "$D/run/ctl1.pid")
kill -9 "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
submit_once >"$T/again" &
waiting=$!
(cd / && spur up --quiet --dir "$D")
wait $waiting
is "a request waits for the controller and is not done twice" "$(cat "$T/again")" "$first"
is "one job of that name" "$(squeue -h -n once -o %i | wc -l)" 1
kill -9 "$(cut -d' ' -f1 "$D/run/ctl1.pid")"
run curl -s -i --max-time 30 "$R/api/v1/jobs"
like "without a controller it is 503" "$out" '^HTTP/1.1 503'
like "with Retry-After" "$out" 'Retry-After: [0-9]+'
done_testing
