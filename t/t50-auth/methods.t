#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
#
# Every method of the controller, called by everybody: who gets past the table, and who does not. The
# rows here are compared with src/spurctld/methods.c, so that a method without a row fails; whose job
# it is, which the handlers look at, is in roles.t.
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "t50-rpc"))
from echo import build, done_testing, equal, ok, root, skip_all

try:
    import grpc
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
except ImportError as missing:
    skip_all(f"python3-grpcio and python3-cryptography are not both installed ({missing})")
if os.getuid() != 0:
    skip_all("needs root, who is an administrator")

PEOPLE, STAFF, ADMIN = {"user", "operator", "admin"}, {"operator", "admin"}, {"admin"}
NODE, CONTROLLER, ANY = {"node", "other node"}, set(), None  # ANY: also without a name
READERS = PEOPLE | NODE  # root of a node is that node
BY_SOCKET = set()  # who comes by the controller's unix socket: nobody here
REST = set()  # spurrestd, by its certificate; see t70-rest
SECRET = "secret"  # anybody who knows the secret that the request holds; here nobody does
C, A, P = "/spur.Controller/", "/spur.Agents/", "/spur.Peers/"
rows = {
    "/spur.Shares/List": PEOPLE, "/spur.Accounting/ListHistory": PEOPLE, "/spur.Accounts/List": PEOPLE, "/spur.Accounts/Change": PEOPLE, "/spur.Reports/Sum": PEOPLE, "/spur.Reports/Sizes": PEOPLE, "/spur.Accounting/Status": PEOPLE, "/spur.Reports/Reservations": PEOPLE, "/spur.Accounts/Adopt": PEOPLE, "/spur.Accounting/Repair": ADMIN, "/spur.Accounting/FixRunaway": STAFF, "/spur.Accounting/ListRecords": PEOPLE,
    C + "SubmitJob": PEOPLE, C + "ListJobs": READERS, C + "GetJob": READERS, C + "CancelJobs": PEOPLE,
    C + "UpdateJob": PEOPLE, C + "Requeue": PEOPLE, C + "Suspend": STAFF, C + "WatchJob": PEOPLE,
    C + "FinishJob": PEOPLE, C + "Explain": READERS, C + "JobAccess": PEOPLE, C + "ListSteps": READERS,
    C + "SignalStep": PEOPLE, C + "ListNodes": READERS, C + "ListPartitions": READERS,
    C + "ListReservations": READERS, C + "ListLicenses": READERS, C + "UpdateNode": STAFF,
    C + "UpdatePartition": ADMIN, C + "UpdateReservation": STAFF, C + "GetConfig": READERS,
    C + "Reconfigure": ADMIN, C + "Shutdown": ADMIN, C + "Ping": ANY, C + "Token": PEOPLE,
    C + "JoinToken": ADMIN, C + "RestToken": REST, C + "WhoAmI": PEOPLE, C + "WatchChanges": REST, C + "Diag": READERS, C + "AddController": ADMIN,
    C + "RemoveController": ADMIN, C + "TransferLeader": ADMIN, C + "TrustController": ADMIN, C + "SetTrigger": PEOPLE, C + "ClearTriggers": PEOPLE, C + "ListTriggers": PEOPLE, C + "SetLevel": ADMIN, C + "ForgetNode": ADMIN,
    C + "GetCrontab": PEOPLE, C + "SetCrontab": PEOPLE,
    C + "ReadJournal": ADMIN, C + "AckJournal": ADMIN,
    A + "Join": SECRET, A + "Vouch": NODE, A + "Session": NODE, "/spur.Links/Ping": CONTROLLER,
    P + "Snapshot": CONTROLLER, P + "Payloads": CONTROLLER, P + "HoldBack": CONTROLLER, P + "Journal": CONTROLLER,
    P + "Enter": SECRET, "/spur.NodeAccess/Vouch": BY_SOCKET,
    C + "RevokeTokens": PEOPLE,  # the last one: it revokes the tokens that it was asked with
}
NOT_TRIED = {(C + "Shutdown", "admin")}  # it would

# ---- the table of the source has these methods and no others ----
text = open(f"{root}/src/spurctld/methods.c").read()
prefixes = dict(re.findall(r'#define ([A-Z]) "([^"]+)"', text))
table = re.search(r"^static const struct row \{.*?^\};", text, re.M | re.S)[0]
found = {prefixes.get(p, "") + name: "STREAM" in kind or "BIDI" in kind
         for p, name, kind in re.findall(r'\{ (?:([A-Z]) )?"([^"]+)",[^{}]*?(RPC_UNARY|RPC_SERVER_STREAM|RPC_BIDI)', table)}
equal("every method has a row here", sorted(found), sorted(rows))

# ---- a cluster ----
dir = tempfile.mkdtemp(prefix="spur-methods.")
env = {**os.environ, "PATH": f"{build}/bin:{os.environ['PATH']}"}
env.pop("SPUR_CONF", None)
conf = os.path.join(dir, "extra.toml")
with open(conf, "w") as file:
    file.write('[access]\noperators = ["daemon"]\n')
D = os.path.join(dir, "c")
up = subprocess.run(["spur", "up", "--dir", D, "--nodes", "2", "--conf", conf], env=env, timeout=120,
                    capture_output=True, text=True)
if up.returncode:
    print(f"Bail out! spur up: {up.stdout}{up.stderr}")
    sys.exit(1)
try:
    ports = open(f"{D}/run/ports").read().split()
    keys = subprocess.run(["find", D, "-name", "cluster.key"], capture_output=True, text=True).stdout.split()
    key = load_pem_private_key(open(keys[0], "rb").read(), None)

    def b64(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    def token(lifespan=300, **claims):
        now = int(time.time())
        head = {"alg": "EdDSA", "typ": "JWT", "kid": "cluster"}
        body = {**claims, "iat": now - 5, "exp": now + lifespan}
        signed = b64(json.dumps(head).encode()) + b"." + b64(json.dumps(body).encode())
        return (signed + b"." + b64(key.sign(signed))).decode()

    callers = {
        "nobody": None,
        "user": token(uid=20002, gid=20002, sun="u20002"),
        "operator": token(uid=1, gid=1, sun="daemon"),
        "admin": token(uid=0, gid=0, sun="root"),
        "node": token(node="n1"),
        "other node": token(node="n2"),
        "a job's token": token(uid=0, gid=0, sun="root", spur_job=1, spur_node="n1"),
        "a token that is over": token(lifespan=-1, uid=0, gid=0, sun="root"),
    }
    channel = grpc.insecure_channel(f"127.0.0.1:{ports[0]}")
    same = lambda data: data
    REFUSED = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}

    def call(path, bearer):
        metadata = [("authorization", f"Bearer {bearer}")] if bearer else []
        stub = channel.unary_stream(path, same, same) if found[path] else channel.unary_unary(path, same, same)
        try:
            if found[path]:
                next(iter(stub(b"", metadata=metadata, timeout=2)), None)
            else:
                stub(b"", metadata=metadata, timeout=10)
            return grpc.StatusCode.OK
        except grpc.RpcError as error:
            return error.code()

    calls = differ = 0
    for path, may in rows.items():
        wrong = []
        for caller, bearer in callers.items():
            if (path, caller) in NOT_TRIED:
                continue
            code = call(path, bearer)
            calls += 1
            if may == SECRET:
                good = code != grpc.StatusCode.OK
            elif may is ANY: # whoever shows a token that is no good is told so
                good = code not in REFUSED or caller == "a token that is over"
            else:
                good = (code in REFUSED) == (caller not in may)
            if not good:
                wrong.append(f"{caller}: {code}")
        differ += len(wrong)
        ok(f"{path} is for those it is for", not wrong, *wrong)
    print(f"# figure F22 methods={len(rows)} callers={len(callers)} calls={calls} wrong={differ}")
    ok("and the controller is there after all that", call(C + "Ping", None) == grpc.StatusCode.OK)
finally:
    subprocess.run(["spur", "down", "--dir", D], env=env, timeout=60, capture_output=True)
    subprocess.run(["rm", "-rf", dir])
done_testing()
