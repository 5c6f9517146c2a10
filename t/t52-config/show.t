#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# spur config show lists every setting with value, default and origin; the documents know every key.
. "$(dirname "$0")/../lib.sh"
. "$HERE/common.sh"

cat >"$T/s.conf" <<'END'
cluster_name = "c"
[accounting]
database_url = "postgresql://spur:secret@db1/spur"
[jobs]
kill_wait = "1:00"
[[nodes]]
names = "n[1-2]"
cpus = 4
memory_mb = "1G"
[[partitions]]
name = "p"
default = true
nodes = "ALL"
END
run spur config show -q "$T/s.conf"
is "shown" "$code:$err" "0:"
value() { grep -E "^(# )?$1 = " <<<"$out" | tr -s ' '; }
is "a key that was given" "$(value kill_wait)" "kill_wait = 60 # $T/s.conf:5, default 30"
is "a key that was not" "$(value min_job_age)" "# min_job_age = 300 # default"
is "a key without value" "$(value prolog)" "# prolog = (unset) # default"
is "what follows from other keys" "$(value sockets)" "# sockets = 4 # follows from other keys"
unlike "passwords are not shown" "$out" secret
like "but the rest of the address is" "$out" 'postgresql://spur:\*+@db1/spur'
echo "$out" >"$T/again.conf"
sed -i 's/\*\*\*\*\*\*/secret/' "$T/again.conf"
run spur config check "$T/again.conf"
is "what is shown is itself a configuration" "$code" 0

run spur config show --json "$T/s.conf"
ok "JSON is JSON" python3 -c 'import json,sys; json.load(open(sys.argv[1]))' <(echo "$out")
echo "$out" >"$T/s.json"
spur config keys >"$T/keys.md"
keys_of() { # the keys of every [section] that is not a [[list]]
    awk '/^## /{on=0} /^### /{on = $2 ~ /^\[[a-z]/ || $2 == "Top"} on && /^\| `/{print $2}' "$T/keys.md" | tr -d '`'
}
is "every key is in it" "$(python3 -c 'import json,sys
for s in json.load(open(sys.argv[1]))["sections"]:
    if s["section"] not in ("nodes", "partitions"):
        for k in s["keys"]: print(k["key"])' "$T/s.json")" "$(keys_of)"
ok "and there are many" test "$(keys_of | wc -l)" -gt 140

# Documents
sed '1,/^<!-- spur config keys -->$/d' "$HERE/../../docs/configuration.md" >"$T/docs.md"
is "docs/configuration.md has the reference of this build (tools/doc-config writes it)" \
    "$(cmp "$T/keys.md" "$T/docs.md" 2>&1)" ""
sections=$(grep -oE '^### \[+[a-z]+' "$T/keys.md" | tr -d '#[ ' | grep -v '^slurm$')
missing=''
for section in $sections; do
    grep -qE "^#? ?\[+$section\]" "$HERE/../../etc/spur.conf.example" || missing+=" $section"
done
is "etc/spur.conf.example has every section" "$missing" ""
done_testing
