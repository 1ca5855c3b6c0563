// The GraphQL peer in Node: mercurius with its JIT on Fastify, over the tables of the REST peer.
//
//   PEER_DATABASE_URL=sqlite:///file.db|postgresql://… node main.js serve --port 4000
//
// As its documentation has it for production: compiled queries (jit: 1), a loader for every relation, no
// GraphiQL and no log. An API key that was looked up is remembered as long as tradepost does it. It has the
// fields that are measured, and no rate limit and no limits of documents.

import { parseArgs } from 'node:util'
import Fastify from 'fastify'
import mercurius from 'mercurius'
import { keyCheck } from './access.js'
import { openPostgres } from './postgres.js'
import { loaders, resolvers, schema } from './schema.js'
import { openSqlite } from './sqlite.js'

const SQLITE = 'sqlite:///'

const { values } = parseArgs({ options: { port: { type: 'string' } }, allowPositionals: true })
const url = process.env.PEER_DATABASE_URL
const store = url.startsWith(SQLITE) ? openSqlite(url.slice(SQLITE.length)) : openPostgres(url)

const app = Fastify({ logger: false })
app.decorateRequest('scopes', null)
app.addHook('onRequest', keyCheck(store))
app.register(mercurius, {
  schema,
  resolvers: resolvers(store),
  loaders: loaders(store),
  context: (request) => ({ scopes: request.scopes }),
  jit: 1,
  graphiql: false
})

process.on('SIGTERM', async () => {
  await app.close()
  await store.close()
})

await app.listen({ host: '127.0.0.1', port: Number(values.port) })
