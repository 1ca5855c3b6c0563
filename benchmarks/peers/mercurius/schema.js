// The schema, the resolvers of its operations, and the loaders of its relations. Rows come from the store
// with the names of the schema, so that their fields need no resolvers.

import { demand } from './access.js'
import { PLACED } from './placing.js'

export const schema = `
  enum OrderStatus { PENDING FULFILLED CANCELLED }
  enum ProductStatus { ACTIVE ARCHIVED }

  type Query {
    user(id: ID!): User
    products(first: Int = 50, after: ID): [Product!]!
  }

  type Mutation {
    createOrder(input: CreateOrderInput!): Order!
  }

  type User {
    id: ID!
    name: String!
    email: String!
    orders(first: Int = 20, after: String): OrderConnection!
  }

  type Order {
    id: ID!
    total: Float!
    currency: String!
    status: OrderStatus!
    lineItems: [LineItem!]!
  }

  type LineItem {
    id: ID!
    quantity: Int!
    unitPrice: Float!
    total: Float!
    sku: String!
    name: String!
    product: Product
  }

  type Product {
    id: ID!
    sku: String!
    name: String!
    description: String
    price: Float!
    currency: String!
    stock: Int
    status: ProductStatus!
  }

  type OrderConnection {
    edges: [OrderEdge!]!
    pageInfo: PageInfo!
  }

  type OrderEdge {
    cursor: String!
    node: Order!
  }

  type PageInfo {
    hasNextPage: Boolean!
    hasPreviousPage: Boolean!
    startCursor: String
    endCursor: String
  }

  input CreateOrderInput {
    userId: ID!
    lineItems: [LineItemInput!]!
  }

  input LineItemInput {
    productId: ID!
    quantity: Int!
  }
`

export function resolvers (store) {
  return {
    Query: {
      user (_, { id }, context) {
        demand(context, 'users:read')
        return store.user(id)
      },
      products (_, { first, after }, context) {
        demand(context, 'products:read')
        return store.products(Math.min(first, 200), after ?? '')
      }
    },
    Mutation: {
      createOrder (_, { input }, context) {
        demand(context, 'orders:write')
        return store.place(input)
      }
    }
  }
}

export function loaders (store) {
  return {
    User: {
      async orders (queries, context) {
        demand(context, 'orders:read')
        return Promise.all(queries.map(({ obj, params }) => page(store, obj.id, params)))
      }
    },
    Order: {
      async lineItems (queries) {
        if (queries.every(({ obj }) => obj[PLACED])) {
          return queries.map(({ obj }) => obj[PLACED])
        }
        const found = new Map(queries.map(({ obj }) => [obj.id, []]))
        for (const line of await store.lineItems([...found.keys()])) {
          found.get(line.orderId).push(line)
        }
        return queries.map(({ obj }) => found.get(obj.id))
      }
    },
    LineItem: {
      async product (queries) {
        const ids = [...new Set(queries.map(({ obj }) => obj.productId))]
        const found = new Map((await store.productsOf(ids)).map((product) => [product.id, product]))
        return queries.map(({ obj }) => found.get(obj.productId) ?? null)
      }
    }
  }
}

async function page (store, userId, { first: asked, after }) {
  const first = Math.min(asked, 100)
  const found = await store.orders(userId, after ? position(after) : '', first + 1)
  const edges = found.slice(0, first).map((node) => ({ cursor: cursor(node.id), node }))
  return {
    edges,
    pageInfo: {
      hasNextPage: found.length > first,
      hasPreviousPage: Boolean(after),
      startCursor: edges[0]?.cursor,
      endCursor: edges.at(-1)?.cursor
    }
  }
}

const cursor = (id) => Buffer.from(id).toString('base64url')
const position = (cursor) => Buffer.from(cursor, 'base64url').toString()
