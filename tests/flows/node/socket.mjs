// The client graphql-ws, told what to do in lines of JSON: {id, query, variables} subscribes, {id} unsubscribes.
// What it reports is a line each: {event, id, ...}. It tries again also where nobody listens yet, and sooner than unasked.

import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';

const [url, key] = process.argv.slice(1);
const tell = (event, members) => console.log(JSON.stringify({ event, ...members }));

const client = createClient({
  url,
  webSocketImpl: WebSocket,
  connectionParams: { authorization: `Bearer ${key}` },
  keepAlive: 200,
  shouldRetry: () => true,
  retryAttempts: 200,
  retryWait: () => wait(100),
  on: {
    connected: () => tell('connected'),
    closed: ({ code }) => tell('closed', { code }),
    pong: (received) => received && tell('pong'),
  },
});

const leave = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  const { id, ...asked } = JSON.parse(line);
  if (asked.query === undefined) {
    leave.get(id)();
    continue;
  }
  const sink = {
    next: (result) => tell('next', { id, result }),
    error: (errors) => tell('error', { id, errors }),
    complete: () => tell('complete', { id }),
  };
  leave.set(id, client.subscribe(asked, sink));
}
await client.dispose();
