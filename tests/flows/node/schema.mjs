// graphql-js reads the schema's file and introspects the service: prints {invalid, file, wire}, two schemas as printed.

import { readFileSync } from 'node:fs';
import { buildClientSchema, buildSchema, getIntrospectionQuery, printSchema, validateSchema } from 'graphql';

const [url, key, path] = process.argv.slice(1);
const file = buildSchema(readFileSync(path, 'utf8'));

const query = getIntrospectionQuery({
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
});
const response = await fetch(url, {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
  body: JSON.stringify({ query }),
});
const wire = buildClientSchema((await response.json()).data);

console.log(
  JSON.stringify({ invalid: validateSchema(file).map(String), file: printSchema(file), wire: printSchema(wire) }),
);
