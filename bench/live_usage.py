"""What a process has used so far: CPU, memory, and the bytes of its TCP sockets as the kernel counts them.

Bytes are `tcpi_bytes_sent` and `tcpi_bytes_received` of Linux' TCP_INFO, summed over all sockets that the process has
had: what the program wrote, encryption and its own framing included, without the headers of TCP and IP. It works for
any program, whatever it writes its sockets with; in a network namespace of its own, the loopback interface counts the
same and 52 bytes of headers a packet. A socket that closes keeps the bytes of the last time it was seen;
`SocketMeter.look` has to be called a few times a second where connections come and go. Only Python's own library is
needed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

_SIZE = 256
_STATE, _RECEIVED, _SENT = 0, 128, 200  # where they are in struct tcp_info of linux/tcp.h
_ESTABLISHED, _LISTENING = 1, 10


@dataclass(frozen=True, slots=True)
class Usage:
    """Totals since the process began, but for `resident` and `sockets`."""

    cpu_s: float
    resident: int  # bytes of memory
    sent: int
    received: int
    sockets: int  # established TCP connections, every end of which is one


class SocketMeter:
    """Counts the bytes of this process's TCP sockets."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}  # (sent, received) by inode
        self.sockets = 0

    def look(self) -> None:
        """Read the counters of all sockets that are open now."""
        self.sockets = 0
        for entry in Path("/proc/self/fd").iterdir():
            try:
                name = str(entry.readlink())
                if not name.startswith("socket:"):
                    continue
                with contextlib.closing(socket.socket(fileno=os.dup(int(entry.name)))) as duplicate:
                    info = duplicate.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SIZE)
            except OSError:  # closed meanwhile, or not TCP
                continue
            if len(info) < _SENT + 8:
                raise SystemExit("this kernel does not count the bytes that a TCP socket sent: Linux 4.19 does")
            if info[_STATE] == _LISTENING:
                continue
            self.sockets += info[_STATE] == _ESTABLISHED
            self._seen[name] = (struct.unpack_from("=Q", info, _SENT)[0], struct.unpack_from("=Q", info, _RECEIVED)[0])

    def usage(self) -> Usage:
        self.look()
        used = resource.getrusage(resource.RUSAGE_SELF)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        sent, received = (sum(column) for column in zip(*self._seen.values(), strict=True)) if self._seen else (0, 0)
        return Usage(used.ru_utime + used.ru_stime, pages * resource.getpagesize(), sent, received, self.sockets)
