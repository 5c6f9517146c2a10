#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
#
# F22, what is forged or late: steps launched by a node that does not manage the job, job tokens on other nodes,
# for other jobs and after the end, reports of a node about jobs it does not have, and whatever a leader of an
# earlier epoch says. Each is refused, the log says why, and the same thing done rightly works.
#
# Whoever forges here has what root on a compute node has: its spool, with the keys of its grants and its token.
import hashlib
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "t50-rpc"))
import echo
from echo import build, done_testing, equal, ok, root, skip_all

try:
    import grpc
    import google.protobuf  # noqa: F401
except ImportError as missing:
    skip_all(f"python3-grpcio and python3-protobuf are not both installed ({missing})")
if os.getuid() != 0:
    skip_all("needs root, to be several users and to read what nodes keep")

T = tempfile.mkdtemp(prefix="spur-forge.")
os.chmod(T, 0o755)
os.mkdir(f"{T}/py")
protos = [p for p in os.listdir(f"{root}/proto") if p.endswith(".proto")]
subprocess.run(["protoc", f"-I{root}/proto", f"--python_out={T}/py", *protos], check=True)
sys.path.insert(0, f"{T}/py")
import agent_pb2
import controller_pb2
import run_pb2
import spool_pb2
import x11_pb2

USER = 20001
env = {k: v for k, v in os.environ.items() if not k.startswith(("SPUR_CON", "SLURM", "SBATCH"))}
env["PATH"] = f"{build}/bin:{env['PATH']}"
D = f"{T}/c"
forged = old = wrong_before = 0


def command(*args, user=None, check=True, **more):
    who = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", "--"] if user else []
    done = subprocess.run([*who, *args], env=env, capture_output=True, text=True, timeout=90, cwd="/", **more)
    if check and done.returncode:
        raise RuntimeError(f"{args}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def wait_for(what, seconds=60):
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def submit(*args, user=USER):
    return int(command("sbatch", "--parsable", "-o", "/dev/null", *args, user=user))


def state(job):
    return command("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T", check=False)


def log(name):
    return open(f"{D}/log/{name}.log").read()


def said(name, pattern, before):
    """Whether the log has such a line beyond its first `before` bytes."""
    return wait_for(lambda: re.search(pattern, log(name)[before:]), 20)


def grants(node):
    """What the node's spool holds: (job, attempt) to its grant."""
    data, at, found = open(f"{D}/spool/{node}/journal", "rb").read(), 8, {}
    while at + 8 <= len(data):
        (size,) = struct.unpack_from("<I", data, at)
        if not size:
            break
        record = spool_pb2.SpoolRecord.FromString(data[at + 8:at + 8 + size])
        if record.WhichOneof("what") == "grant":
            found[record.grant.job_id, record.grant.attempt] = record.grant
        at += 8 + size
    return found


def prove(key, bytes_):
    inner = hashlib.sha256(key + bytes_).digest()
    return hashlib.sha256(key + inner).digest()


same = lambda data: data


def bearer(token):
    return [("authorization", f"Bearer {token}")] if token else []


def run_step(address, messages, token=None, stop=lambda out: False):
    """Opens RunStep and says `messages`; what comes back, and the error that ended it or None."""
    ask, got = Queue(), []
    for message in messages:
        ask.put(message.SerializeToString())
    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream("/spur.NodeAccess/RunStep", same, same)(
            iter(ask.get, None), metadata=bearer(token), timeout=20)
        try:
            for data in call:
                got.append(run_pb2.RunStepOut.FromString(data))
                if stop(got[-1]):
                    break
            return got, None
        except grpc.RpcError as error:
            return got, error
        finally:
            ask.put(None)
            call.cancel()


def refused(name, node, error, text, why, before):
    """One forgery: an error with this text came back, and the node's log says why."""
    global forged
    forged += 1
    details = error.details() if error is not None else "it was done"
    good = error is not None and re.search(text, details)
    ok(name, good, f"answer: {details}", f"wanted: /{text}/")
    ok(f"{name}: the log says why", said(node, why, before), f"wanted: /{why}/", *log(node)[before:].splitlines()[-5:])


def request(job):
    message = run_pb2.RunStepIn()
    message.request.job_id = job
    message.request.ntasks = 1
    message.request.min_nodes = 1
    message.request.overlap = True
    return message


def launch(layout, proof, node, program):
    message = run_pb2.RunStepIn()
    message.launch.layout = layout
    message.launch.proof = proof
    message.launch.node = node
    message.launch.programs.add().args.extend(program)
    message.launch.work_dir = "/"
    message.launch.env.append(b"PATH=/usr/bin:/bin")
    return message


# ---- a leader of an earlier epoch: whoever is between node and controller holds its words back ----
class Wire:
    """A controller for one node that passes everything on, holds messages back and says them later."""

    def __init__(self, target):
        self.target, self.hold, self.held, self.passed, self.answers = target, False, [], [], []
        self.queue, self.inject, self.lock, self.ours = None, None, threading.Lock(), set()
        self.server = grpc.server(ThreadPoolExecutor(8))
        self.server.add_generic_rpc_handlers((self,))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def service(self, details):
        if details.method == "/spur.Agents/Session":
            return grpc.stream_stream_rpc_method_handler(self.session, same, same)
        return None

    def up(self, frames):
        """What the node says, and what we say in its name."""
        queue = Queue()
        self.inject = queue

        def read():
            try:
                for data in frames:
                    queue.put(data)
            except Exception:
                pass
            queue.put(None)

        threading.Thread(target=read, daemon=True).start()
        for data in iter(queue.get, None):
            message = agent_pb2.NodeMessage.FromString(data)
            if message.WhichOneof("what") == "grant_ack":
                self.answers.append(message.grant_ack)
            yield data

    def session(self, frames, context):
        queue = Queue()
        self.queue = queue
        # a pool of its own: others' failed attempts would hold this one back
        channel = grpc.insecure_channel(self.target, [("grpc.use_local_subchannel_pool", 1)])
        call = channel.stream_stream("/spur.Agents/Session", same, same)(
            self.up(frames), metadata=[(k, v) for k, v in context.invocation_metadata() if k == "authorization"])
        context.add_callback(call.cancel)

        def read():
            try:
                for data in call:
                    queue.put(data)
            except Exception:
                pass
            queue.put(None)

        threading.Thread(target=read, daemon=True).start()
        for data in iter(queue.get, None):
            message = agent_pb2.CtlMessage.FromString(data)
            with self.lock:
                if self.hold and data not in self.ours and message.WhichOneof("what") in ("grant", "launch"):
                    self.held.append(message)
                    continue
                self.passed.append(message)
            yield data
        channel.close()

    def say(self, message):
        self.ours.add(message.SerializeToString())
        self.queue.put(message.SerializeToString())

    def report(self, message):
        self.inject.put(message.SerializeToString())

    def epoch(self):
        with self.lock:
            return max([m.epoch for m in self.passed if m.WhichOneof("what") == "welcome"], default=0)


def pid_of(name):
    return int(open(f"{D}/run/{name}.pid").read().split()[0])


def gone(pid):
    try:
        return re.search(r"^State:\s*[ZX]", open(f"/proc/{pid}/status").read(), re.M) is not None
    except FileNotFoundError:
        return True


started = []


def start(name, change=same):
    """Kills a daemon and starts it with the arguments it had, or with changed ones."""
    pid = pid_of(name)
    args = change(open(f"/proc/{pid}/cmdline").read().split("\0")[:-1])
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: gone(pid))
    program = "spurctld" if name.startswith("ctl") else "spurd"
    with open(f"{D}/log/{name}.log", "a") as out:
        started.append(subprocess.Popen([f"{build}/bin/{program}", *args[1:]], env=env, stdout=out, stderr=out, start_new_session=True))


try:
    command("spur", "up", "--dir", D, "--nodes", "3", "--cpus", "8")
    for line in open(f"{D}/env"):
        match = re.match(r"export (SPUR_CON\w*)=(.*)", line)
        if match:
            env[match[1]] = match[2].strip("'\"")
    port = open(f"{D}/run/ports").read().split()[0]

    # A job on two nodes that n1 manages; another one on n3.
    wide = submit("-N2", "-w", "n[1-2]", "--wrap", "sleep 1000")
    other = submit("-N1", "-w", "n3", "--wrap", "sleep 1000")
    ok("two jobs run", wait_for(lambda: state(wide) == state(other) == "RUNNING"))
    ok("their nodes hold grants", wait_for(lambda: (wide, 1) in grants("n2") and (other, 1) in grants("n3")))
    grant = {"n1": grants("n1")[wide, 1], "n2": grants("n2")[wide, 1], "n3": grants("n3")[other, 1]}
    address = dict(zip(["n1", "n2"], [re.sub("^http://", "", a) for a in grant["n1"].addresses]))
    address["n3"] = re.sub("^http://", "", grant["n3"].addresses[0])
    equal("the manager alone has the keys of all nodes", [len(grant[n].step_keys) for n in ("n1", "n2")], [2, 0])

    token = command("scontrol", "token", "lifespan=600", user=USER).split("=", 1)[1]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = channel.unary_unary("/spur.Controller/JobAccess", same, same)

        def access(job):
            reply = ask(controller_pb2.JobAccessRequest(id=str(job)).SerializeToString(), metadata=bearer(token), timeout=20)
            return controller_pb2.JobAccessReply.FromString(reply).token

        wide_token, other_token = access(wide), access(other)

    # ---- as it should be ----
    got, error = run_step(address["n1"], [request(wide)], wide_token, stop=lambda out: True)
    what = got[0].WhichOneof("what") if got else error
    equal("the managing node gives the owner a step", what, "created")
    given = got[0].created
    layout = run_pb2.StepLayout.FromString(given.layout)
    first = layout.nodes[0].name
    mark = f"{T}/mark"
    os.mkdir(mark)
    os.chmod(mark, 0o777)
    got, error = run_step(address[first], [launch(given.layout, given.proofs[0], first, ["/bin/touch", f"{mark}/right"])],
                          stop=lambda out: os.path.exists(f"{mark}/right"))
    ok("and with its proof the step is launched", wait_for(lambda: os.path.exists(f"{mark}/right")), error)

    # ---- steps launched by others ----
    def layout_for(job, node, step, attempt=1):
        out = run_pb2.StepLayout()
        out.id.job_id, out.id.attempt, out.id.step = job, attempt, step
        out.ntasks = out.cpus_per_task = 1
        out.overlap = True
        out.manager = node
        place = out.nodes.add()
        place.name, place.cpus, place.address = node, 1, "http://" + address[node]
        place.tasks.append(0)
        return out.SerializeToString()

    def try_launch(name, node, bytes_, proof, text):
        before = len(log(node))
        _, error = run_step(address[node], [launch(bytes_, proof, node, ["/bin/touch", f"{mark}/forged"])])
        refused(name, node, error, text, rf"access.refused .*what=launch job=\d+ .*why=.*{text}", before)

    forgery = layout_for(wide, "n1", 77)
    try_launch("F22: n2, which has a part of the job, launches a step on n1", "n1", forgery,
               prove(grant["n2"].step_key, forgery), "Invalid job credential")
    try_launch("F22: n3, which has none, launches a step on n1 with the key of its own job", "n1", forgery,
               prove(grant["n3"].step_key, forgery), "Invalid job credential")
    try_launch("F22: nobody in particular launches a step", "n1", forgery, b"", "Invalid job credential")
    strange = layout_for(wide, "n3", 78)
    try_launch("F22: n3 is told to run a step of a job that it does not have", "n3", strange,
               prove(grant["n3"].step_key, strange), "credential revoked")
    past = layout_for(wide, "n1", 79, attempt=2)
    try_launch("F22: a step of an attempt that there is not", "n1", past, prove(grant["n1"].step_key, past), "credential revoked")
    try_launch("F22: a proof for n2 is shown to n1", "n1", forgery, prove(grant["n1"].step_keys[1], forgery), "Invalid job credential")

    # ---- job tokens ----
    def try_request(name, node, job, token, text, why=None):
        before = len(log(node))
        _, error = run_step(address[node], [request(job)], token, stop=lambda out: True)
        refused(name, node, error, text, rf"access.refused .*why=.*{why or text}", before)

    def try_output(name, node, job, token, text, why):
        before = len(log(node))
        message = agent_pb2.ReadOutputRequest(job_id=job).SerializeToString()
        with grpc.insecure_channel(address[node]) as channel:
            try:
                list(channel.unary_stream("/spur.NodeAccess/ReadOutput", same, same)(message, metadata=bearer(token), timeout=20))
                error = None
            except grpc.RpcError as failed:
                error = failed
        refused(name, node, error, text, rf"access.refused .*why=.*{why}", before)

    try_request("F22: a job's token on another node of the job", "n2", wide, wide_token, "for node n1, not for node n2")
    try_request("F22: a user's own token, which is not for one job", "n1", wide, token, "one job alone")
    try_request("F22: a job's token for another job", "n3", other, wide_token, "for job", "for job|it is for node")
    try_request("F22: no token at all", "n1", wide, None, "denied")
    try_output("F22: output by a user's own token", "n1", wide, token, "one job alone", "one job alone")
    try_output("F22: output by the token of another node", "n3", other, wide_token, "denied|may not|not for|permission", "it is for node n1")
    stranger = command("scontrol", "token", user=20002).split("=", 1)[1]
    try_request("F22: another user's token", "n1", wide, stranger, "one job alone")
    try_output("F22: output by another user's token", "n1", wide, stranger, "one job alone", "one job alone")
    second = submit("-N1", "-w", "n1", "--wrap", "sleep 1000")
    ok("one more job on n1 runs", wait_for(lambda: state(second) == "RUNNING"))
    try_request("F22: a job's token for another job on the same node", "n1", second, wide_token, f"for job {wide}, not for job {second}")
    try_output("F22: output of another job by a job's token", "n1", second, wide_token, f"for job {wide}, not", f"for job {wide}, not")

    # ---- ports and displays ----
    def try_ports(name, node, bytes_, proof, text):
        before = len(log(node))
        message = run_pb2.HoldPortsRequest(layout=bytes_, proof=proof).SerializeToString()
        with grpc.insecure_channel(address[node]) as channel:
            try:
                channel.unary_unary("/spur.NodeAccess/HoldPorts", same, same)(message, timeout=20)
                error = None
            except grpc.RpcError as failed:
                error = failed
        refused(name, node, error, text, rf"access.refused .*what=ports .*why=.*{text}", before)

    def try_display(name, node, text, token=None, **fields):
        before = len(log(node))
        message = x11_pb2.X11In(open=x11_pb2.X11Open(**fields)).SerializeToString()
        ask = Queue()
        ask.put(message)
        with grpc.insecure_channel(address[node]) as channel:
            call = channel.stream_stream("/spur.NodeAccess/ForwardX11", same, same)(
                iter(ask.get, None), metadata=bearer(token), timeout=20)
            try:
                next(iter(call))
                error = None
            except grpc.RpcError as failed:
                error = failed
            ask.put(None)
            call.cancel()
        refused(name, node, error, text, rf"access.refused .*what=(x11|token) .*why=.*{text}", before)

    ports = run_pb2.StepLayout.FromString(forgery)
    ports.resv_ports = "12000-12003"
    ports = ports.SerializeToString()
    try_ports("F22: n2 holds ports on n1", "n1", ports, prove(grant["n2"].step_key, ports), "Invalid job credential")
    try_ports("F22: nobody in particular holds ports", "n1", ports, b"", "Invalid job credential")
    try_ports("F22: ports for a job that is not here", "n3", strange, prove(grant["n3"].step_key, strange), "credential revoked")
    try_display("F22: n2 has a display of the job on n1", "n1", "Invalid job credential", layout=forgery,
                proof=prove(grant["n2"].step_key, forgery))
    try_display("F22: nobody in particular has a display", "n1", "denied", job_id=wide)
    try_display("F22: another user has a display of the job", "n1", "one job alone", token=stranger, job_id=wide)
    try_display("F22: another user has the display of the script", "n1", "one job alone", token=stranger, job_id=wide, batch=True,
                display=10, cookie=b"0" * 16)
    try_display("F22: a display by a user's own token", "n1", "one job alone", token=token, job_id=other)

    # ---- n3 says what it is not entitled to say ----
    wire = Wire(f"127.0.0.1:{port}")

    def by_wire(args):
        at = args.index("--controller")
        return [*args[:at + 1], f"http://127.0.0.1:{wire.port}", *args[at + 2:]]

    start("n3", by_wire)
    ok("n3 speaks by way of somebody else", wait_for(lambda: wire.epoch() > 0))
    idle = lambda: command("sinfo", "-h", "-N", "-n", "n3", "-o", "%T", check=False) in ("mixed", "idle")
    ok("and is up", wait_for(idle))

    def try_report(name, fill, what):
        global forged
        forged += 1
        before = len(log("ctl1"))
        message = agent_pb2.NodeMessage()
        fill(message)
        wire.report(message)
        ok(name, said("ctl1", rf"report.refused .*node=n3 what={what} job={wide} .*why=", before), *log("ctl1")[before:].splitlines()[-3:])

    def ended(message):
        message.ended.id.job_id, message.ended.id.attempt, message.ended.id.step = wide, 1, 0xFFFFFFFB
        message.ended.exit_status, message.ended.released = 0, True

    def released(message):
        message.released.job_id, message.released.attempt = wide, 1

    def ack(message):
        message.grant_ack.job_id, message.grant_ack.attempt, message.grant_ack.refused = wide, 1, True

    try_report("F22: a node says that a job of others has ended", ended, "ended")
    try_report("F22: that it was released", released, "released")
    try_report("F22: that its grant is refused", ack, "grant_ack")
    equal("the job runs", state(wide), "RUNNING")

    # ---- an earlier epoch: what was held back comes after another leader has begun ----
    wire.hold = True
    late = submit("-N1", "-w", "n3", "--wrap", f"echo $SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} >>{mark}/late")
    ok("the grant of a job is held back", wait_for(lambda: any(m.grant.job_id == late for m in wire.held)))
    before_epoch = wire.epoch()
    start("ctl1")
    ok("another epoch has begun", wait_for(lambda: wire.epoch() > before_epoch))
    ok("in which the grant is made again", wait_for(lambda: len([m for m in wire.held if m.grant.job_id == late]) >= 2))
    stale = next(m for m in wire.held if m.grant.job_id == late and m.epoch == before_epoch)

    def old_words(kind):
        message = agent_pb2.CtlMessage(epoch=before_epoch)
        if kind == "grant":
            message.CopyFrom(stale)
        elif kind == "launch":
            message.launch.CopyFrom(stale.grant.launch)
            message.launch.job_id, message.launch.attempt = late, 1
        elif kind == "config":
            message.config.hash = "forged"
        elif kind == "stop":
            message.stop.reason = "forged"
        elif kind == "reboot":
            message.reboot.reason = "forged"
        elif kind == "controllers":
            message.controllers.addresses.append("http://127.0.0.1:1")
        else:
            part = getattr(message, kind)
            part.job_id, part.attempt = other, 1
            if kind == "revoke":
                part.kill = True
            if kind == "signal":
                part.signal, part.full = 9, True
        return message

    for kind in ("grant", "launch", "revoke", "signal", "freeze", "limit", "config", "controllers", "stop", "reboot"):
        forged, old, before = forged + 1, old + 1, len(log("n3"))
        welcomes = len([m for m in wire.passed if m.WhichOneof("what") == "welcome"])
        answers = len(wire.answers)
        wire.say(old_words(kind))
        ok(f"F22: {kind} of an earlier epoch is refused, and the log says why",
           said("n3", rf"session.stale .*what={kind} refused: epoch {before_epoch} is over", before), *log("n3")[before:].splitlines()[-3:])
        if kind in ("grant", "launch"):
            ok(f"F22: and who said {kind} is told", wait_for(lambda: any(
                a.job_id == late and a.refused and "is over" in a.text for a in wire.answers[answers:])))
        ok("the node asks who leads", wait_for(lambda: len([m for m in wire.passed if m.WhichOneof("what") == "welcome"]) > welcomes))
    ok("nothing of it ran", not os.path.exists(f"{mark}/late"))
    equal("and the job of the node goes on", state(other), "RUNNING")
    with wire.lock:
        wire.hold = False
    for message in [m for m in wire.held if m.epoch == wire.epoch()][-1:]:
        wire.say(message)
    ok("what the leader says is done", wait_for(lambda: state(late) == "COMPLETED"), state(late))
    equal("once, in the first attempt", open(f"{mark}/late").read(), f"{late} 0\n")

    # ---- after the end ----
    command("scancel", str(wide))
    ok("the job is over", wait_for(lambda: state(wide) == "CANCELLED"))
    ok("and its nodes are free of it", wait_for(lambda: "n2" not in command("squeue", "-h", "-t", "completing", "-o", "%N")))
    try_request("F22: a job's token after the end of the job", "n1", wide, wide_token, "Invalid job id|already")
    try_launch("F22: a proof of the manager after the end of the job", "n1", forgery, prove(grant["n1"].step_key, forgery), "credential revoked")
    before, forged = len(log("n3")), forged + 1
    command("scancel", str(other))
    ok("the other job is over", wait_for(lambda: state(other) == "CANCELLED"))
    ok("and its node has heard of it", wait_for(lambda: "n3" not in command("squeue", "-h", "-t", "completing", "-o", "%N")))
    again = agent_pb2.CtlMessage(epoch=wire.epoch())
    again.grant.CopyFrom(grant["n3"])
    answers = len(wire.answers)
    wire.say(again)
    ok("F22: a grant that was revoked does not come back", wait_for(lambda: any(
        a.job_id == other and a.refused for a in wire.answers[answers:])) and said("n3", r"grant.refused .*why=.*revoked", before))
    forged += 1
    again.grant.CopyFrom(stale.grant)
    again.grant.job_id, again.grant.alloc.node = other + 1000, "n1"
    wire.say(again)
    ok("F22: nor does a grant for another node count", said("n3", r"grant.refused .*why=.*a grant for node 'n1' came to 'n3'", before))
    forged += 1
    again.grant.alloc.node, again.grant.signature = "n3", b"x" * 64
    wire.say(again)
    ok("F22: nor one with a signature that is not the cluster's", said("n3", r"grant.refused .*why=.*Invalid job credential", before))
    ok("nothing that was forged ran", not os.path.exists(f"{mark}/forged"))
finally:
    command("spur", "down", "--dir", D, check=False)
    for process in started:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
    subprocess.run(["rm", "-rf", T])
print(f"# figure F22 forged={forged} of_old_epochs={old} wrong={echo.bad}")
done_testing()
