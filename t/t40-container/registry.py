#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""registry.py - a registry of one image over HTTP: the layout in DIR as "test:one"

usage: registry.py DIR PORTFILE
"""
import http.server
import json
import os
import sys

top, port_file = sys.argv[1:]
index = json.load(open(os.path.join(top, "index.json")))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parts = self.path.split("/")
        data = None
        if self.path == "/v2/test/manifests/one":
            data = json.dumps(index).encode()
        elif parts[:3] == ["", "v2", "test"] and parts[4].startswith("sha256:"):
            try:
                data = open(os.path.join(top, "blobs", "sha256", parts[4][7:]), "rb").read()
            except OSError:
                pass
        self.send_response(200 if data is not None else 404)
        data = data or b"{}"
        if parts[3] == "manifests":  # both ways of saying how long it is
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for at in range(0, len(data), 100):
                piece = data[at:at + 100]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w") as out:
    out.write(str(server.server_port))
os.rename(port_file + ".new", port_file)
server.serve_forever()
