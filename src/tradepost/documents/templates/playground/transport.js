// Sends operations to the service: queries and mutations by HTTP, subscriptions by WebSocket.

const PROTOCOL = "graphql-transport-ws"; // https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md

// Sends one request and resolves to `{status, reason, ms, body}`; the body is parsed if it is JSON.
// Rejects if there is no response.
export async function ask(address, key, operation, signal) {
  const headers = {
    "content-type": "application/json",
    accept: "application/graphql-response+json, application/json;q=0.9",
  };
  if (key) headers.authorization = `Bearer ${key}`;
  const started = performance.now();
  const body = JSON.stringify(operation);
  const answer = await fetch(address, { method: "POST", headers, body, signal, credentials: "omit", cache: "no-store" });
  const text = await answer.text();
  return { status: answer.status, reason: answer.statusText, ms: performance.now() - started, body: parsed(text) };
}

// Starts a subscription and returns a function that stops it. `on` has `begun()`, `next(body)`,
// `failed(errors)` and `ended(why, well)`; `ended` is called exactly once.
export function listen(address, key, operation, on) {
  const url = new URL(address, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const socket = new WebSocket(url, PROTOCOL);
  const say = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  let why = null;
  const end = (reason, well = true) => {
    why ??= [reason, well];
    socket.close(1000);
  };
  const heard = {
    connection_ack: () => {
      say({ id: "1", type: "subscribe", payload: operation });
      on.begun();
    },
    ping: () => say({ type: "pong" }),
    next: ({ payload }) => on.next(payload),
    error: ({ payload }) => {
      on.failed(payload);
      end("refused", false);
    },
    complete: () => end("completed by the service"),
  };
  socket.onopen = () => say({ type: "connection_init", payload: key ? { authorization: `Bearer ${key}` } : {} });
  socket.onmessage = ({ data }) => {
    const message = parsed(data);
    heard[message?.type]?.(message);
  };
  socket.onclose = ({ code, reason }) => on.ended(...(why ?? [`connection closed: ${code} ${reason}`.trim(), false]));
  return () => {
    say({ id: "1", type: "complete" });
    end("stopped");
  };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
