// The audit of GraphQL over HTTP: prints [{id, name, status, reason}].

import { serverAudits } from 'graphql-http';

const [url, key] = process.argv.slice(1);
const fetchFn = (input, init = {}) =>
  fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${key}` } });

const results = [];
for (const audit of serverAudits({ url, fetchFn })) {
  const { id, name, status, reason } = await audit.fn();
  results.push({ id, name, status, reason });
}
console.log(JSON.stringify(results));
