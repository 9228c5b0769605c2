"""Serves the WSGI application with Cheroot: cheroot_server.py HOST:PORT [CERTIFICATE KEY]."""

import os
import sys

from cheroot.ssl.builtin import BuiltinSSLAdapter
from cheroot.wsgi import Server

from app import wsgi

host, port = sys.argv[1].split(":")
server = Server((host, int(port)), wsgi, numthreads=1, timeout=1 if "SHORT" in os.environ else 10)
if len(sys.argv) > 2:
    server.ssl_adapter = BuiltinSSLAdapter(sys.argv[2], sys.argv[3])
server.safe_start()
