// Bearer API keys, looked up by their hash as the REST peer does, and remembered for a moment.

import { createHash } from 'node:crypto'
import mercurius from 'mercurius'

const REMEMBERED_MS = 800
const SCHEME = 'Bearer '

export function keyCheck (store) {
  const known = new Map()

  async function lookedUp (hash) {
    const key = await store.apiKey(hash)
    if (!key || key.revokedAt || (key.expiresAt && new Date(key.expiresAt) <= new Date())) {
      known.delete(hash)
      return null
    }
    known.set(hash, { scopes: key.scopes, until: performance.now() + REMEMBERED_MS })
    return key.scopes
  }

  return async function (request, reply) {
    const given = request.headers.authorization ?? ''
    if (given.startsWith(SCHEME)) {
      const hash = createHash('sha256').update(given.slice(SCHEME.length)).digest('hex')
      const remembered = known.get(hash)
      request.scopes = remembered?.until > performance.now() ? remembered.scopes : await lookedUp(hash)
    }
    if (request.scopes === null) {
      return reply.code(401).header('WWW-Authenticate', 'Bearer').send({ message: 'Unknown API key' })
    }
  }
}

export function demand (context, scope) {
  if (!context.scopes.includes(scope) && !context.scopes.includes('admin')) {
    throw new mercurius.ErrorWithProps(`The key lacks the scope ${scope}`, { code: 'FORBIDDEN' })
  }
}
