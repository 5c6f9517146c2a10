#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ml.t - --ml-env, and what frameworks read to find out that they run under Slurm
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 4
cd "$(user_dir)"

# What a program that calls init_process_group("env://") reads; they really meet at the address.
cat >meet.py <<'END'
import os, socket, time
addr, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
local, local_world = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
assert 0 <= local < local_world and rank < world
assert int(os.environ["NODE_RANK"]) == int(os.environ["SLURM_NODEID"])
assert local == int(os.environ["SLURM_LOCALID"]) and rank == int(os.environ["SLURM_PROCID"])
# torchrun's own options come from these
assert os.environ["PET_MASTER_ADDR"] == addr and int(os.environ["PET_MASTER_PORT"]) == port
assert int(os.environ["PET_NNODES"]) == world and int(os.environ["PET_NODE_RANK"]) == rank
if rank == 0:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((addr, port))
    server.listen()
    seen, held = {0}, []
    while len(seen) < world:
        peer = server.accept()[0]
        seen.add(int(peer.recv(16)))
        held.append(peer)
    print("met", sorted(seen))
else:
    until = time.time() + 60
    while True:
        try:
            peer = socket.create_connection((addr, port), 5)
            break
        except OSError:
            assert time.time() < until
            time.sleep(0.1)
    peer.send(str(rank).encode())
    peer.recv(1)
END
# The variables of JAX's detection of Slurm, and how it makes its address of them.
cat >jax.py <<'END'
import os, re
names = ["SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_NODES"]
assert all(name in os.environ for name in names), names
nodes = os.environ["SLURM_STEP_NODELIST"]
first = re.sub(r"\[(\d+).*", r"\1", nodes).split(",")[0]
print(first, int(os.environ["SLURM_JOB_ID"]) % 4096 > 0, os.environ["SLURM_NTASKS"], os.environ["SLURM_PROCID"], os.environ["SLURM_LOCALID"], os.environ["SLURM_STEP_NUM_NODES"])
END
# Lightning's, which also wants to see --ntasks-per-node and does not take a shell for a job.
cat >lightning.py <<'END'
import os, re
assert os.environ["SLURM_JOB_NAME"] not in ("bash", "interactive")
assert int(os.environ["SLURM_NTASKS"]) > 1 and "SLURM_NTASKS_PER_NODE" in os.environ
nodes = re.sub(r"\[(.*?)[,-].*\]", r"\1", os.environ["SLURM_NODELIST"])
first = re.sub(r"\[(.*?)\]", r"\1", nodes).split(" ")[0].split(",")[0]
print(os.environ.get("MASTER_ADDR", first), os.environ["SLURM_PROCID"], os.environ["SLURM_LOCALID"], os.environ["SLURM_NODEID"], os.environ["SLURM_NNODES"])
END

for user in "" as_user; do
    u=${user:-root}
    for try in 1 2 3 4 5; do # the port may be another cluster's on this machine; the next job has another
        run $user timeout 100 srun --ml-env -N3 --ntasks-per-node=2 python3 meet.py
        case "$err" in *'Address already in use'*) ;; *) break ;; esac
    done
    is "$u: six processes on three nodes meet" "$code $out" "0 met [0, 1, 2, 3, 4, 5]"
    run $user srun -N3 --ntasks-per-node=2 -l python3 jax.py
    is "$u: JAX finds itself" "$(sort -n <<<"$out" | tr '\n' ,)" "0: n1 True 6 0 0 3,1: n1 True 6 1 1 3,2: n1 True 6 2 0 3,3: n1 True 6 3 1 3,4: n1 True 6 4 0 3,5: n1 True 6 5 1 3,"
    run $user srun -N2 --ntasks-per-node=2 -l python3 lightning.py
    is "$u: Lightning finds itself" "$(sort -n <<<"$out" | tr '\n' ,)" "0: n1 0 0 0 2,1: n1 1 1 0 2,2: n1 2 0 1 2,3: n1 3 1 1 2,"
done
is "without --ml-env nothing is set" "$(srun env | grep -cE '^(MASTER_|WORLD_SIZE|RANK|LOCAL_RANK|NODE_RANK|PET_)')" 0
is "a port of the user's own stays" "$(MASTER_PORT=4711 srun --ml-env printenv MASTER_PORT PET_MASTER_PORT | tr '\n' ' ')" "4711 4711 "

cat >job.sh <<'END'
#!/bin/bash
env | grep -E '^(MASTER_|WORLD_SIZE|RANK|LOCAL_|NODE_RANK)' | sort
srun -n2 bash -c 'echo step $RANK/$WORLD_SIZE at $MASTER_PORT'
srun -N1 -n1 -r1 bash -c 'echo second $RANK/$WORLD_SIZE at $MASTER_PORT'
END
job=$(submit --ml-env -N2 -n4 -W -o job.out job.sh)
job=${job%%[!0-9]*}
is "the script has them, and its steps their own" "$(sort job.out)" "$(sort <<END
LOCAL_RANK=0
LOCAL_WORLD_SIZE=$(grep -oP 'LOCAL_WORLD_SIZE=\K.*' job.out)
MASTER_ADDR=127.0.0.1
MASTER_PORT=$((20000 + job))
NODE_RANK=0
RANK=0
WORLD_SIZE=4
second 0/1 at $((20000 + job + 1009))
step 0/2 at $((20000 + job))
step 1/2 at $((20000 + job))
END
)"
run salloc --ml-env -n2 srun bash -c 'echo $RANK/$WORLD_SIZE'
is "salloc passes it on" "$(sort <<<"$out" | tr '\n' ' ')" "0/2 1/2 "
is "scontrol and JSON know" "$(spur show job "$job" --json 2>/dev/null | grep -c '"ml_environment": *true')" 1
done_testing
