// The store on PostgreSQL, by pg: prepared statements over a pool. postgres.js, which pipelines, was
// faster at a single row and no faster at many.

import pg from 'pg'
import { judge, placed, rows, taken } from './placing.js'

const POOL = 8

const PRODUCT = 'id, sku, name, description, price_minor::float8 / 100 AS price, currency, stock, status'
const LINE = `id, order_id AS "orderId", product_id AS "productId", quantity, sku, name,
  unit_price_minor::float8 / 100 AS "unitPrice", unit_price_minor::float8 * quantity / 100 AS total`

const apiKey = prepared(
  'SELECT scopes, expires_at AS "expiresAt", revoked_at AS "revokedAt" FROM api_keys WHERE hash = $1'
)
const user = prepared('SELECT id, name, email, status FROM users WHERE id = $1')
const products = prepared(`SELECT ${PRODUCT} FROM products WHERE id > $1 ORDER BY id LIMIT $2`)
const productsOf = prepared(`SELECT ${PRODUCT} FROM products WHERE id = ANY($1)`)
const orders = prepared(`
  SELECT id, total_minor::float8 / 100 AS total, currency, status FROM orders
  WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`)
const lineItems = prepared(
  `SELECT ${LINE} FROM line_items WHERE order_id = ANY($1) ORDER BY order_id, position`
)

// Locked in the order of their ids, so that two orders never wait for each other.
const lockedProducts = prepared(`
  SELECT id, sku, name, price_minor AS "priceMinor", currency, stock, status FROM products
  WHERE id = ANY($1) ORDER BY id FOR UPDATE`)
const take = prepared(`
  UPDATE products SET stock = stock - pieces, updated_at = $1
  FROM unnest($2::text[], $3::int[]) AS taken (id, pieces) WHERE products.id = taken.id`)
const insertOrder = prepared(`
  INSERT INTO orders (id, user_id, status, currency, total_minor, created_at, updated_at)
  VALUES ($1, $2, 'PENDING', $3, $4, $5, $5)`)
const insertLines = prepared(`
  INSERT INTO line_items
    (order_id, created_at, updated_at, id, position, product_id, quantity, sku, name, unit_price_minor)
  SELECT $1, $2, $2, line.*
  FROM unnest($3::text[], $4::int[], $5::text[], $6::int[], $7::text[], $8::text[], $9::int[]) AS line`)
const insertEvent = prepared('INSERT INTO events (id, type, subject, time, data) VALUES ($1, $2, $3, $4, $5)')

export function openPostgres (url) {
  const pool = new pg.Pool({ connectionString: url, max: POOL })

  return {
    apiKey: async (hash) => (await apiKey(pool, hash))[0],
    user: async (id) => (await user(pool, id))[0],
    products: (first, after) => products(pool, after, first),
    productsOf: (ids) => productsOf(pool, ids),
    orders: (userId, after, first) => orders(pool, userId, after, first),
    lineItems: (orderIds) => lineItems(pool, orderIds),
    place: (input) => inTransaction(pool, (client) => place(client, input)),
    close: () => pool.end()
  }
}

async function place (client, input) {
  const ids = [...new Set(input.lineItems.map(({ productId }) => productId))]
  const [buyer] = await user(client, input.userId)
  const known = judge(input, buyer, await lockedProducts(client, ids))
  const pieces = taken(input, known)
  const { lines, event, ...order } = rows(input, known)
  const now = new Date()
  const column = (name) => lines.map((line) => line[name])
  await take(client, now, [...pieces.keys()], [...pieces.values()])
  await insertOrder(client, order.id, order.userId, order.currency, order.totalMinor, now)
  await insertLines(
    client,
    order.id,
    now,
    ...['id', 'position', 'productId', 'quantity', 'sku', 'name', 'unitPriceMinor'].map(column)
  )
  await insertEvent(client, event.id, event.type, event.subject, now, event.data)
  return placed({ ...order, lines })
}

async function inTransaction (pool, work) {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const done = await work(client)
    await client.query('COMMIT')
    return done
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

// A statement under a name is parsed once per connection.
function prepared (text) {
  const name = `s${prepared.count = (prepared.count ?? 0) + 1}`
  return async (connection, ...values) => (await connection.query({ name, text, values })).rows
}
