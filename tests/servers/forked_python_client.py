"""Stands in for `python`: `forked_python.py` forks the process, this one waits for it.

It is started for each process as `python -IS`, so it imports nothing but what is built in.
"""

import array
import marshal
import os
import signal
import sys

# Without the module around it, which takes as long to import as Python to start.
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket

server = socket(AF_UNIX)
server.connect(sys.argv[1])
content = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))  # noqa: PTH109
streams = array.array("i", (0, 1, 2))
length = len(content).to_bytes(8, "little")
server.sendmsg([length], [(SOL_SOCKET, SCM_RIGHTS, streams)])
server.sendall(content)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: server.send(bytes([number])))
answer = server.recv(64)
if not answer:
    sys.exit("the server of forked processes has ended")
code = marshal.loads(answer)  # noqa: S302 - our own server's
if code < 0:
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
