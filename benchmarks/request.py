"""One HTTP request of a question, as a value: it can be sent by a client or put on the wire as it stands."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    body: bytes = b""

    def headers(self, key: str) -> dict[str, str]:
        about_body = {"Content-Type": "application/json", "Content-Length": str(len(self.body))}
        return {
            "Authorization": f"Bearer {key}",
            "Accept": "application/json",
            **(about_body if self.body else {}),
        }

    def wire(self, host: str, key: str) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers(key).items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body
