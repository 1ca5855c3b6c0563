// Placing an order, whatever the engine: its rules, its rows and its event.

import { randomUUID } from 'node:crypto'
import mercurius from 'mercurius'

// A symbol, as mercurius makes the key of a loader of all that is enumerable in an object's JSON.
export const PLACED = Symbol('placed')

export function judge (input, user, products) {
  if (user?.status !== 'ACTIVE') {
    throw refused('userId names no active user')
  }
  const known = new Map(products.map((product) => [product.id, product]))
  if (input.lineItems.length < 1 || input.lineItems.some(({ quantity }) => quantity < 1)) {
    throw refused('an order is of one line or more, each of one piece or more')
  }
  if (input.lineItems.some(({ productId }) => known.get(productId)?.status !== 'ACTIVE')) {
    throw refused('productId names no active product')
  }
  if (new Set(products.map(({ currency }) => currency)).size > 1) {
    throw refused('the products have different currencies')
  }
  return known
}

// What is taken of each product that is tracked; refused where there is too little.
export function taken (input, known) {
  const pieces = new Map()
  for (const { productId, quantity } of input.lineItems) {
    pieces.set(productId, (pieces.get(productId) ?? 0) + quantity)
  }
  for (const [id, wanted] of pieces) {
    const { stock, sku } = known.get(id)
    if (stock === null) {
      pieces.delete(id)
    } else if (stock < wanted) {
      throw refused(`too little stock of ${sku}`)
    }
  }
  return pieces
}

export function rows (input, known) {
  const id = randomUUID()
  const lines = input.lineItems.map(({ productId, quantity }, position) => {
    const { sku, name, priceMinor } = known.get(productId)
    const own = { id: randomUUID(), orderId: id, position, productId, quantity }
    return { ...own, sku, name, unitPriceMinor: priceMinor }
  })
  return {
    id,
    userId: input.userId,
    currency: known.get(lines[0].productId).currency,
    totalMinor: lines.reduce((sum, line) => sum + line.unitPriceMinor * line.quantity, 0),
    lines,
    event: event('dev.tradepost.order.placed', id)
  }
}

function event (type, entityId) {
  const timestamp = new Date().toISOString()
  const data = { entityType: 'order', entityId, eventType: type, timestamp, schemaVersion: '1' }
  return { id: randomUUID(), type, subject: `orders/${entityId}`, data }
}

// The order as the schema has it, with its lines under `PLACED`: they are known and need not be read.
export function placed (order) {
  return {
    id: order.id,
    total: order.totalMinor / 100,
    currency: order.currency,
    status: 'PENDING',
    [PLACED]: order.lines.map((line) => ({
      ...line,
      unitPrice: line.unitPriceMinor / 100,
      total: line.unitPriceMinor * line.quantity / 100
    }))
  }
}

function refused (message) {
  return new mercurius.ErrorWithProps(message, { code: 'BAD_USER_INPUT' })
}
