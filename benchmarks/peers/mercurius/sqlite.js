// The store on SQLite, by better-sqlite3: prepared statements, each as durable as those of the other peers.

import Database from 'better-sqlite3'
import { judge, placed, rows, taken } from './placing.js'

const PRODUCT = 'id, sku, name, description, price_minor / 100.0 AS price, currency, stock, status'
const LINE = `id, order_id AS orderId, product_id AS productId, quantity, sku, name,
  unit_price_minor / 100.0 AS unitPrice, unit_price_minor * quantity / 100.0 AS total`
const SETTINGS = ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON', 'busy_timeout = 30000']
const GIVEN = 'IN (SELECT value FROM json_each(?))'

export function openSqlite (path) {
  const database = new Database(path)
  for (const setting of SETTINGS) {
    database.pragma(setting)
  }
  const apiKey = database.prepare(
    'SELECT scopes, expires_at AS expiresAt, revoked_at AS revokedAt FROM api_keys WHERE hash = ?'
  )
  const user = database.prepare('SELECT id, name, email, status FROM users WHERE id = ?')
  const products = database.prepare(`SELECT ${PRODUCT} FROM products WHERE id > ? ORDER BY id LIMIT ?`)
  const productsOf = database.prepare(
    `SELECT ${PRODUCT}, price_minor AS priceMinor FROM products WHERE id ${GIVEN}`
  )
  const orders = database.prepare(`
    SELECT id, total_minor / 100.0 AS total, currency, status FROM orders
    WHERE user_id = ? AND id > ? ORDER BY id LIMIT ?`)
  const lineItems = database.prepare(
    `SELECT ${LINE} FROM line_items WHERE order_id ${GIVEN} ORDER BY order_id, position`
  )

  return {
    apiKey (hash) {
      const found = apiKey.get(hash)
      return found && { ...found, scopes: JSON.parse(found.scopes) }
    },
    user: (id) => user.get(id),
    products: (first, after) => products.all(after, first),
    productsOf: (ids) => productsOf.all(JSON.stringify(ids)),
    orders: (userId, after, first) => orders.all(userId, after, first),
    lineItems: (orderIds) => lineItems.all(JSON.stringify(orderIds)),
    place: placing(database, user, productsOf),
    close: () => database.close()
  }
}

function placing (database, user, productsOf) {
  const take = database.prepare('UPDATE products SET stock = stock - ?, updated_at = ? WHERE id = ?')
  const insertOrder = database.prepare(`
    INSERT INTO orders (id, user_id, status, currency, total_minor, created_at, updated_at)
    VALUES (@id, @userId, 'PENDING', @currency, @totalMinor, @now, @now)`)
  const insertLine = database.prepare(`
    INSERT INTO line_items
      (id, order_id, position, product_id, quantity, sku, name, unit_price_minor, created_at, updated_at)
    VALUES (@id, @orderId, @position, @productId, @quantity, @sku, @name, @unitPriceMinor, @now, @now)`)
  const insertEvent = database.prepare(
    'INSERT INTO events (id, type, subject, time, data) VALUES (@id, @type, @subject, @now, @data)'
  )

  const place = database.transaction((input) => {
    const now = sqlTime()
    const ids = input.lineItems.map(({ productId }) => productId)
    const known = judge(input, user.get(input.userId), productsOf.all(JSON.stringify(ids)))
    for (const [id, pieces] of taken(input, known)) {
      take.run(pieces, now, id)
    }
    const { lines, event, ...order } = rows(input, known)
    insertOrder.run({ ...order, now })
    for (const line of lines) {
      insertLine.run({ ...line, now })
    }
    insertEvent.run({ ...event, data: JSON.stringify(event.data), now })
    return placed({ ...order, lines })
  })
  // The write lock at once: to upgrade a read transaction to it can fail.
  return place.immediate
}

// As SQLAlchemy writes instants into SQLite.
function sqlTime () {
  return new Date().toISOString().replace('T', ' ').replace('Z', '000')
}
