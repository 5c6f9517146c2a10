#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
#
# A stock gRPC client (python3-grpcio) uses our server as it would any other.
# groups: asan
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from echo import Server, build, done_testing, equal, ok, root, skip_all, token

try:
    import grpc
    import google.protobuf
except ImportError as missing:
    skip_all(f"python3-grpcio is not installed ({missing})")

server = Server("--keys", "DIR")
subprocess.run(["protoc", f"-I{root}/src/rpc/test/proto", f"--python_out={server.dir}", "echo.proto"],
               check=True)
sys.path.insert(0, server.dir)
from echo_pb2 import EchoMessage, EchoWho


class Echo:
    def __init__(self, channel):
        pack = lambda message: message.SerializeToString()
        path = "/echo.Echo/"
        self.channel = channel
        self.say = channel.unary_unary(path + "Say", pack, EchoMessage.FromString)
        self.small = channel.unary_unary(path + "Small", pack, EchoMessage.FromString)
        self.fail = channel.unary_unary(path + "Fail", pack, EchoMessage.FromString)
        self.none = channel.unary_unary(path + "None", pack, EchoMessage.FromString)
        self.who = channel.unary_unary(path + "Who", pack, EchoWho.FromString)
        self.admin = channel.unary_unary(path + "Admin", pack, EchoWho.FromString)
        self.count = channel.unary_stream(path + "Count", pack, EchoMessage.FromString)
        self.chat = channel.stream_stream(path + "Chat", pack, EchoMessage.FromString)


def failure(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except grpc.RpcError as error:
        return error
    return None


plain = Echo(grpc.insecure_channel(f"127.0.0.1:{server.port}"))
local = Echo(grpc.insecure_channel(f"unix:{server.socket}"))

equal("unary over TCP", plain.say(EchoMessage(text="hello"), timeout=10).text, "hello")
equal("unary over a unix socket", local.say(EchoMessage(text="hi"), timeout=10).text, "hi")
many = [plain.say.future(EchoMessage(text=str(i)), timeout=20) for i in range(500)]
equal("500 calls at once", [f.result().text for f in many], [str(i) for i in range(500)])
big = os.urandom(6 << 20)
options = [("grpc.max_receive_message_length", 20 << 20), ("grpc.max_send_message_length", 20 << 20)]
wide = Echo(grpc.insecure_channel(f"127.0.0.1:{server.port}", options=options))
equal("a message of 6 MB both ways", wide.say(EchoMessage(data=big), timeout=20).data, big)

stream = list(plain.count(EchoMessage(number=1000, data=b"x" * 3000), timeout=20))
equal("a server stream arrives whole", (len(stream), stream[-1].number, len(stream[0].data)),
      (1000, 0, 3000))
chat = [m.number for m in plain.chat((EchoMessage(number=i) for i in range(200)), timeout=20)]
equal("a two-way stream", chat, list(range(200)))
endless = plain.count(EchoMessage(number=1 << 30, data=b"x" * 1000))
next(endless)
endless.cancel()
ok("a cancelled stream ends", failure(lambda: list(endless)).code() == grpc.StatusCode.CANCELLED)

error = failure(plain.fail, EchoMessage(number=42), timeout=10)
equal("an error's status", error.code(), grpc.StatusCode.NOT_FOUND)
equal("an error's words, percent-decoded", error.details(), "no job 42: 100% sure, \u00e9t\u00e9")
detail = dict(error.trailing_metadata())["spur-error-bin"]
ok("an error's exact code for our own clients", b"ERR_INVALID_JOB_ID" in detail, detail)
equal("no such method", failure(plain.none, EchoMessage(), timeout=10).code(),
      grpc.StatusCode.UNIMPLEMENTED)
equal("a request over the method's limit",
      failure(plain.small, EchoMessage(data=b"x" * 5000), timeout=10).code(),
      grpc.StatusCode.RESOURCE_EXHAUSTED)
start = time.time()
equal("the deadline", failure(plain.say, EchoMessage(number=3000), timeout=0.2).code(),
      grpc.StatusCode.DEADLINE_EXCEEDED)
ok("is kept", time.time() - start < 2)

with open(os.path.join(server.dir, "secret"), "rb") as f:
    secret = f.read()
bearer = lambda **claims: (("authorization", "Bearer " + token(secret, **claims)),)
who = local.who(EchoMessage(), timeout=10)
equal("unix: the kernel says who", (who.how, who.uid), ("unix", os.getuid()))
who = plain.who(EchoMessage(), timeout=10)
equal("TCP: nobody", who.how, "none")
who = plain.who(EchoMessage(), metadata=bearer(sun="alice", uid=4711), timeout=10)
equal("a token in the metadata says who", (who.how, who.user, who.uid), ("jwt", "alice", 4711))
equal("what it does not allow", failure(plain.admin, EchoMessage(), timeout=10,
                                        metadata=bearer(sun="alice", uid=4711)).code(),
      grpc.StatusCode.PERMISSION_DENIED)
equal("without a token", failure(plain.admin, EchoMessage(), timeout=10).code(),
      grpc.StatusCode.UNAUTHENTICATED)
equal("an expired token", failure(plain.who, EchoMessage(), timeout=10,
                                  metadata=bearer(sun="a", exp=int(time.time()) - 5)).code(),
      grpc.StatusCode.UNAUTHENTICATED)
forged = token(b"x" * 32, sun="root", uid=0)
equal("a forged token", failure(plain.say, EchoMessage(), timeout=10,
                                metadata=(("authorization", "Bearer " + forged),)).code(),
      grpc.StatusCode.UNAUTHENTICATED)

with open(os.path.join(server.dir, "ca.crt"), "rb") as f:
    ca = f.read()
trust = grpc.ssl_channel_credentials(root_certificates=ca)
tls = Echo(grpc.secure_channel(f"localhost:{server.port}", trust))
equal("TLS on the same port", tls.say(EchoMessage(text="secret"), timeout=10).text, "secret")
who = tls.who(EchoMessage(), metadata=bearer(sun="bob", uid=12), timeout=10)
equal("TLS with a token", (who.how, who.uid), ("jwt", 12))
secure = Echo(grpc.secure_channel(f"localhost:{server.port}", trust, options=options))
equal("6 MB over TLS", secure.say(EchoMessage(data=big), timeout=30).data, big)
other = Echo(grpc.secure_channel(f"localhost:{server.port}", grpc.ssl_channel_credentials()))
equal("TLS from an authority it does not know", failure(other.say, EchoMessage(), timeout=5).code(),
      grpc.StatusCode.UNAVAILABLE)

slow = plain.say.future(EchoMessage(text="last", number=300), timeout=10)
time.sleep(0.1)
server.process.stdin.close()
equal("a call under way ends before the server does", slow.result().text, "last")
for echo in (plain, local, wide, tls, secure, other):
    echo.channel.close()
try:
    code = server.process.wait(20)
except subprocess.TimeoutExpired:
    code = "still there"
equal("the server ends in order", code, 0)
server.stop()
done_testing()
