"""Messages between rank 0 of a notebook and the other ranks, beside MPI: a rank that waits for the next cell waits in no collective."""
import json
import queue
import secrets
import socket
import struct
import threading


def send(connection, message, lock):
    words = json.dumps(message).encode()
    with lock:
        connection.sendall(struct.pack("!Q", len(words)) + words)


def receive(connection):
    """The next message; None when the other side has gone."""
    def exactly(count):
        parts = bytearray()
        while len(parts) < count:
            part = connection.recv(min(count - len(parts), 1 << 20))
            if not part:
                return None
            parts += part
        return bytes(parts)

    try:
        head = exactly(8)
        words = exactly(struct.unpack("!Q", head)[0]) if head else None
    except OSError:
        return None
    return json.loads(words) if words is not None else None


class Leader:
    """Rank 0's side. `heard` is a queue of (rank, message); message None: that rank has gone."""

    def __init__(self, ranks):
        self.ranks, self.heard = ranks, queue.Queue()
        self.token = secrets.token_hex(16)
        self._server = socket.create_server(("", 0), backlog=max(ranks, 8))
        self.address = [socket.gethostname(), self._server.getsockname()[1], self.token]
        self._connections, self._locks = {}, {}

    def accept_all(self):
        while len(self._connections) < self.ranks - 1:
            connection, _ = self._server.accept()
            hello = receive(connection)
            if not hello or hello.get("token") != self.token:
                connection.close()
                continue
            rank = hello["rank"]
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections[rank], self._locks[rank] = connection, threading.Lock()
            threading.Thread(target=self._listen, args=(rank, connection), daemon=True).start()
        self._server.close()

    def _listen(self, rank, connection):
        while (message := receive(connection)) is not None:
            self.heard.put((rank, message))
        self.heard.put((rank, None))

    def send_all(self, message):
        for rank, connection in self._connections.items():
            try:
                send(connection, message, self._locks[rank])
            except OSError:
                self.heard.put((rank, None))


class Follower:
    """The side of another rank."""

    def __init__(self, rank, address):
        host, port, token = address
        here = "127.0.0.1" if host == socket.gethostname() else host
        self._connection = socket.create_connection((here, port), timeout=60)
        self._connection.settimeout(None)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lock = threading.Lock()
        self.send({"rank": rank, "token": token})

    def send(self, message):
        send(self._connection, message, self._lock)

    def receive(self):
        return receive(self._connection)
