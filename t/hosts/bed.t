#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The bed itself: hosts are apart, are cut off and rebooted, and leave nothing behind, also when the test is killed.
# groups: short
. "$(dirname "$0")/bed.sh"
hosts_up a b

is "a host has its name" "$(on a hostname)" a
is "and users of its own" "$(on a useradd --system onlya; on a id -un onlya; on b id -un onlya 2>&1)" "onlya
id: 'onlya': no such user"
on b bash -c 'python3 -m http.server --bind 0.0.0.0 8000 --directory /etc >/dev/null 2>&1 &'
fetch() { on a timeout 2 python3 -c 'import urllib.request; print(urllib.request.urlopen("http://b:8000/hostname", timeout=1).read().decode().strip())'; }
ok "one reaches another by name" wait_for 10 fetch
is "and finds its files there" "$(fetch)" b
cut b
not_ok "who is cut off is not reached" fetch
mend b
ok "and is again when it is mended" wait_for 10 fetch
on b bash -c 'touch /run/file /var/lib/file'
before=$(on b cat /proc/sys/kernel/random/boot_id)
reboot b
unlike "a reboot makes another boot id" "$(on b cat /proc/sys/kernel/random/boot_id)" "$before"
is "empties /run, keeps /var" "$(on b ls /run/file /var/lib/file 2>/dev/null)" /var/lib/file
not_ok "and ends what ran" fetch

# Another bed beside this one, with hosts of the same names, whose test is killed.
cat >"$T/other.sh" <<OTHER
#!/bin/bash
. "$SOURCE/t/hosts/bed.sh"
hosts_up a b
on a bash -c 'touch /run/other; setsid sleep 1000 & setsid sleep 1000 &'
echo "\$keeper \$bed_cgroup \$T" >"$T/other.is"
while :; do sleep 0.2; done
OTHER
setsid bash "$T/other.sh" >/dev/null 2>&1 &
other=$!
ok "another bed runs beside this one" wait_for 30 test -s "$T/other.is"
read -r other_keeper other_cgroup other_dir <"$T/other.is"
not_ok "and is another" on a test -e /run/other
kill -9 $other
ok "when its test is killed its processes end" wait_for 20 eval '! kill -0 $other_keeper 2>/dev/null'
ok "its cgroups go" wait_for 20 eval '[ ! -e "$other_cgroup" ]'
ok "and its files" wait_for 20 eval '[ ! -e "$other_dir/bed" ]'
rm -rf "$other_dir"
is "this one goes on" "$(on a hostname)" a
down
not_ok "down ends it" test -e "$bed_cgroup"
done_testing
