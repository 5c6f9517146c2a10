#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Debian's own programs that were linked with libslurm.so.38, unmodified, with our library: Perl modules, the Torque
# wrappers, MPICH's launcher. `tools/deps --compat` fetches them; nothing of them is installed.
. "$(dirname "$0")/../lib.sh"
root=$SPUR_BUILD/compat-clients
[ -e "$root/usr/lib/x86_64-linux-gnu/perl5/5.36/Slurm.pm" ] || skip_all "Debian's clients are not here: tools/deps --compat"
export LD_LIBRARY_PATH=$SPUR_BUILD/src/compat/38
perl=$root/usr/lib/x86_64-linux-gnu/perl5/5.36
export PERL5LIB=$perl:$root/usr/share/perl5
slurm() { perl -MSlurm -e "my \$s = Slurm::new() or die; $1"; }

# ---- without a controller ----
is "Slurm::Hostlist" "$(slurm 'my $h = Slurm::Hostlist::create("n[1-3]"); $h->push("n7"); print $h->count(), " ", $h->shift(), " ", $h->ranged_string();')" "4 n1 n[2-3,7]"
is "api_version" "$(slurm 'print join(".", Slurm->api_version());')" "22.5.8"

cluster_up --nodes 2 --cpus 4 --mem 8G
cd "$T"
chmod 777 "$T"
one=$(sbatch --parsable -J one -N 2 -t 10 -o /dev/null --wrap 'sleep 300')
two=$(sbatch --parsable -J two -H -N 2 --exclusive -o /dev/null --wrap 'sleep 300') # waits for the first
wait_for 20 job_is "$one" RUNNING

# ---- the layouts of Debian's headers are ours, and a program compiled against them runs ----
if [ -e "$root/usr/include/slurm/slurm.h" ] && command -v gcc >/dev/null; then
    is "sizes, offsets and constants of Debian's headers" "$(gcc -fsyntax-only -w -I"$root/usr/include" "$SPUR_BUILD/src/compat/38/layout.c" 2>&1)" ""
    gcc -w -D_GNU_SOURCE -I"$root/usr/include" -o "$T/client" "$HERE/../../src/compat/test/client.c" -L"$SPUR_BUILD/src/compat/38" -lslurm -lpthread
    run "$T/client" offline
    is "a program compiled against them" "$out $code" " 0"
    scancel "$one" "$two"
    wait_for 20 job_is "$one" CANCELLED
    run "$T/client" cluster
    is "does all it can with our library" "$out $code" " 0"
    one=$(sbatch --parsable -J one -N 2 -t 10 -o /dev/null --wrap 'sleep 300')
    two=$(sbatch --parsable -J two -H -N 2 --exclusive -o /dev/null --wrap 'sleep 300')
    wait_for 20 job_is "$one" RUNNING
fi

# ---- perl -MSlurm ----
is "load_jobs" "$(slurm 'my $m = $s->load_jobs(0, 1); print join(" ", map { "$_->{name}=" . $s->job_state_string($_->{job_state}) } grep { $_->{job_id} >= '"$one"' } @{$m->{job_array}});')" "one=RUNNING two=PENDING"
is "what a job has" "$(slurm 'my $j = $s->load_job('"$one"')->{job_array}[0]; print "$j->{nodes} $j->{num_nodes} $j->{time_limit} $j->{partition} ", join(",", @{$j->{node_inx}});')" "n[1-2] 2 10 debug 0,1"
is "load_node" "$(slurm 'my $m = $s->load_node(); print join(" ", map { "$_->{name}:$_->{cpus}:" . $s->node_state_string($_->{node_state}) } @{$m->{node_array}});')" "n1:4:MIXED n2:4:MIXED"
is "load_partitions" "$(slurm 'my $p = $s->load_partitions(0, 1)->{partition_array}[0]; print "$p->{name} $p->{nodes} $p->{total_cpus} $p->{state_up}";')" "debug n[1-2] 8 3"
like "load_ctl_conf" "$(slurm 'my $c = $s->load_ctl_conf(0); print "$c->{cluster_name} $c->{next_job_id}";')" "^[a-z]+ [0-9]+$"
like "get_job_steps" "$(slurm 'my $m = $s->get_job_steps(0, 0xfffffffe, 0xfffffffe, 1); print ref($m->{job_steps});')" "ARRAY"
is "ping" "$(slurm 'print $s->ping(0);')" "0"
like "load_reservations" "$(slurm 'print ref($s->load_reservations(0)->{reservation_array});')" "ARRAY"
like "signal_job of a job that is not there" "$(slurm 'my $rc = $s->signal_job(99999, 9); print "$rc ", $s->strerror($s->get_errno());')" "^-1 Invalid job id specified"
three=$(slurm 'my $r = $s->submit_batch_job({ script => "#!/bin/sh\nexit 0\n", name => "three", work_dir => "/tmp", std_out => "/dev/null", user_id => 0, group_id => 0, min_nodes => 1, environment => { A => "b" } }) or die $s->strerror($s->get_errno()); print $r->{job_id};')
like "submit_batch_job" "$three" "^[0-9]+$"
ok "and it ran" wait_for 30 job_is "$three" COMPLETED

# ---- Torque's commands ----
q() { PATH=$root/usr/bin:$PATH "$root/usr/bin/$1" "${@:2}"; }
like "qstat" "$(q qstat 2>&1)" "$one +one +root .* R debug"
like "qstat -f" "$(q qstat -f "$one" 2>&1)" "Job_Name = one"
like "pbsnodes" "$(q pbsnodes 2>&1)" "n1.*state = .*np = 4"
ok "qrls" q qrls "$two"
ok "releases the job" wait_for 20 eval '[ "$(squeue -h -j '"$two"' -o %r)" != JobHeldUser ]'
ok "qhold" q qhold "$two"
ok "holds it again" wait_for 20 eval 'squeue -h -j '"$two"' -o %r | grep -q Held'
ok "qdel" q qdel "$one"
ok "ends the job" wait_for 30 job_is "$one" CANCELLED
printf '#!/bin/sh\n#PBS -N four\nexit 0\n' >"$T/four.sh"
mkdir "$T/bin"
cp "$root/usr/bin/qsub" "$T/bin"
ln -s "$SPUR_BUILD/bin/sbatch" "$T/bin/sbatch" # it runs the one beside it
like "qsub" "$("$T/bin/qsub" "$T/four.sh" 2>&1)" "^[0-9]+"

# ---- MPICH's launcher asks for the nodes of the job ----
scancel "$two"
out=$(PATH=$SPUR_BUILD/bin:$root/usr/bin:$PATH timeout 60 salloc -N2 -n2 "$root/usr/bin/mpiexec.hydra" hostname 2>"$T/err")
is "mpiexec.hydra starts a process for each task" "$(wc -l <<<"$out")" "2"

# ---- Slurmdb.pm loads ----
like "perl -MSlurmdb" "$(perl -MSlurmdb -e 'my $c = Slurmdb::connection_get(); print defined $c ? "connected" : "not";' 2>&1)" "connected"
done_testing
