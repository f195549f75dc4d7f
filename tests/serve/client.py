"""Asks an ASGI application without a network: what a server would hand it, and what it sends back."""

import asyncio
import json
from urllib.parse import urlencode


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Client:
    """One caller; close it to end its loop."""

    def __init__(self, app, token=None):
        self._app, self._token = app, token
        self._loop = asyncio.new_event_loop()

    def close(self):
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.close()

    def get(self, path, **values):
        return self.send("GET", path, urlencode(values, doseq=True).encode())

    def post(self, path, document):
        return self.send("POST", path, body=json.dumps(document).encode(), headers=[(b"content-type", b"application/json")])

    def send(self, method, path, query=b"", body=b"", headers=()):
        given = [(b"host", b"localhost"), *headers]
        if self._token is not None:
            given.append((b"authorization", b"Bearer " + self._token.encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("utf-8", "surrogateescape"),
            "query_string": query,
            "root_path": "",
            "headers": given,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        return self._loop.run_until_complete(self._call(scope, body))

    async def _call(self, scope, body):
        parts = [{"type": "http.request", "body": body, "more_body": False}]
        sent = []

        async def receive():
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await self._app(scope, receive, send)
        start = next(message for message in sent if message["type"] == "http.response.start")
        content = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
        return Answer(start["status"], {name.decode().lower(): value.decode() for name, value in start["headers"]}, content)
